"""Stores broken in what a firing makes and what it answers, each caught by the contract test that speaks of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from broken_schedules import Firer, caught_in_firing
from broken_stores import caught

from treadle.core.job import Key
from treadle.stores.memory.adapter import MemoryStore

STEP = "firings.a_firing_enqueues_its_job_and_advances_the_schedule"
ORDER = "firings.a_batch_is_answered_in_its_order"
TWICE = "firings.the_same_time_twice_in_a_call_fires_once"
BESIDE = "firings.a_firing_that_is_over_does_not_hinder_another_of_its_schedule"
MANY = "firings.many_fire_in_one_call"
CHANGED = "firings.a_firing_that_was_read_before_a_change_does_nothing"
PUT_BACK = "firings.what_was_read_before_a_firing_is_not_put_back"
LAST = "firings.the_last_firing_ends_the_schedule"
SKIPPED = "firings.while_a_firing_is_unfinished_the_next_is_skipped"
ONE_WINS = "firings.of_many_that_fire_the_same_time_one_wins"
NEVER_BOTH = "firings.a_change_and_a_firing_never_both_win"
CLOCK = "firings.without_a_moment_a_firing_goes_by_the_stores_own_clock"


# -- the job and the advance


@pytest.mark.parametrize(
    "changed",
    [
        {"queue": "default"},
        {"priority": 0},
        {"max_attempts": None},
        {"schedule": None},
        {"key": Key("dedupe", "cron:nightly")},
        {"payload_json": "null"},
        {"delay": 1.0},
        {"id": "01890a5d-ac96-774b-bcce-b302099a8057"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_store_that_makes_another_job_than_the_firing_says_is_caught(changed):
    class Broken(Firer):
        def job(self, firing, now):
            return replace(firing.job, **changed)

    caught_in_firing(Broken, STEP)


def test_a_store_that_makes_the_job_due_when_the_schedule_was_is_caught():
    class Broken(Firer):
        def job(self, firing, now):
            return replace(firing.job, run_at=firing.schedule.next_at)

    caught_in_firing(Broken, STEP, CLOCK)


@pytest.mark.parametrize(
    "changed",
    [
        lambda before, after: {"next_at": before.next_at},
        lambda before, after: {"last_at": before.last_at},
        lambda before, after: {"last_at": before.next_at},
        lambda before, after: {"revision": before.revision},
        lambda before, after: {"revision": after.revision + 1},
        lambda before, after: {"next_at": after.next_at and after.next_at.replace(microsecond=0)},
        lambda before, after: {"paused": True},
    ],
    ids=["time kept", "last run kept", "last run when it was due", "revision kept", "revision by two", "seconds", "paused"],
)
def test_a_store_that_advances_a_schedule_otherwise_is_caught(changed):
    class Broken(Firer):
        def advanced(self, current, firing, answer, now):
            after = super().advanced(current, firing, answer, now)
            return replace(after, **changed(current, after))

    caught_in_firing(Broken, STEP)


def test_a_store_whose_firing_is_no_change_is_caught():
    class Broken(Firer):
        def advanced(self, *args):
            after = super().advanced(*args)
            return replace(after, revision=after.revision - 1)

    caught_in_firing(Broken, STEP, PUT_BACK, NEVER_BOTH, ONE_WINS, LAST)


def test_a_store_that_writes_back_what_the_scheduler_read_is_caught():
    class Broken(Firer):
        def fits(self, current, read):
            return not current.paused and current.next_at == read.next_at

        def advanced(self, current, firing, answer, now):
            return super().advanced(firing.schedule, firing, answer, now)

    caught_in_firing(Broken, CHANGED, BESIDE)


def test_a_store_that_advances_every_schedule_of_that_time_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            answer = await super().fire_one(firing, now)
            for one in await self.list_schedules():
                if answer and one.next_at == firing.schedule.next_at:
                    self._schedules._kept[one.name] = self.advanced(one, firing, answer, now)
            return answer

    caught_in_firing(Broken, STEP, ORDER, MANY)


def test_a_store_that_keeps_the_old_time_where_there_is_no_next_is_caught():
    class Broken(Firer):
        def advanced(self, current, firing, answer, now):
            after = super().advanced(current, firing, answer, now)
            return replace(after, next_at=firing.next_at or current.next_at)

    caught_in_firing(Broken, LAST)


def test_a_store_that_deletes_a_schedule_that_has_ended_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            answer = await super().fire_one(firing, now)
            if firing.next_at is None:
                await self.delete_schedule(firing.schedule.name)
            return answer

    caught_in_firing(Broken, LAST)


def test_a_store_that_answers_a_firing_with_another_job_than_is_stored_is_caught():
    class Broken(Firer):
        async def enqueued(self, firing, now):
            answer = await super().enqueued(firing, now)
            return replace(answer, job=replace(answer.job, schedule=None))

    caught_in_firing(Broken, STEP, SKIPPED, MANY)


def test_a_store_that_wakes_nobody_when_it_fires_is_caught(monkeypatch: pytest.MonkeyPatch):
    class Broken(MemoryStore):
        fires = False

        async def fire(self, firings, **options):
            self.fires = True
            return await super().fire(firings, **options)

        async def listen(self, wake):
            return await super().listen(lambda: None if self.fires else wake())

    monkeypatch.setattr(sys.modules["treadle.testing.contract.concurrency"], "DEADLINE", 0.2)
    caught(Broken, "concurrency.a_listener_is_woken_by_a_firing")


def test_a_store_that_fires_by_its_own_clock_in_any_case_is_caught():
    class Broken(Firer):
        async def fire(self, firings, *, now=None):
            return await super().fire(firings)

    caught_in_firing(Broken, STEP, LAST)


def test_a_store_that_has_no_clock_of_its_own_to_fire_by_is_caught():
    class Broken(Firer):
        async def fire(self, firings, *, now=None):
            return await super().fire(firings, now=now or firings[0].schedule.next_at)

    caught_in_firing(Broken, CLOCK)


def test_a_store_that_reads_the_clock_twice_is_caught():
    class Broken(Firer):
        def job(self, firing, now):
            return replace(firing.job, run_at=now + timedelta(microseconds=1))

    caught_in_firing(Broken, CLOCK, STEP)


# -- batches


def test_a_store_that_leaves_out_what_did_not_fire_is_caught():
    class Broken(Firer):
        async def fire(self, firings, **options):
            return [answer for answer in await super().fire(firings, **options) if answer]

    caught_in_firing(Broken, ORDER, TWICE, CHANGED)


def test_a_store_that_answers_by_name_is_caught():
    class Broken(Firer):
        async def fire(self, firings, **options):
            return await super().fire(sorted(firings, key=lambda one: one.schedule.name), **options)

    caught_in_firing(Broken, ORDER)


def test_a_store_that_gives_a_whole_batch_the_next_time_of_its_first_is_caught():
    class Broken(Firer):
        async def fire(self, firings, **options):
            return await super().fire([replace(one, next_at=firings[0].next_at) for one in firings], **options)

    caught_in_firing(Broken, ORDER)


def test_a_store_that_fires_all_or_nothing_is_caught():
    class Broken(Firer):
        async def fire(self, firings, **options):
            current = [await self.get_schedule(one.schedule.name) for one in firings]
            if not all(there and self.fits(there, one.schedule) for there, one in zip(current, firings, strict=True)):
                return [None for _ in firings]
            return await super().fire(firings, **options)

    caught_in_firing(Broken, ORDER, BESIDE)


def test_a_store_that_looks_at_the_schedules_only_before_a_batch_is_caught():
    class Broken(Firer):
        async def fire(self, firings, *, now=None):
            before = [await self.get_schedule(one.schedule.name) for one in firings]
            fitting = [there is not None and self.fits(there, one.schedule) for there, one in zip(before, firings, strict=True)]
            answers = []
            for one, fits in zip(firings, fitting, strict=True):
                current = await self.get_schedule(one.schedule.name)
                again = replace(one, schedule=current) if fits else one
                answers.append(await self.fire_one(again, now or datetime.now(UTC)))
            return answers

    caught_in_firing(Broken, TWICE)


def test_a_store_that_takes_one_firing_of_each_schedule_from_a_batch_is_caught():
    class Broken(Firer):
        async def fire(self, firings, **options):
            first = {}
            for one in firings:
                first.setdefault(one.schedule.name, one)
            fired = dict(zip(first, await super().fire([*first.values()], **options), strict=True))
            return [fired[one.schedule.name] if first[one.schedule.name] is one else None for one in firings]

    caught_in_firing(Broken, BESIDE, TWICE)


def test_a_store_that_fires_one_round_trip_is_caught():
    class Broken(Firer):
        async def fire(self, firings, **options):
            return await super().fire(firings[:200], **options) + [None for _ in firings[200:]]

    caught_in_firing(Broken, MANY)
