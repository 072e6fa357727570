"""Stores broken in how they keep intervals going, each caught by the contract test that speaks of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from broken_stores import MODEL, caught, run

from treadle.core.filter import EVERYTHING
from treadle.core.job import UNFINISHED, Enqueued, State
from treadle.core.store import Ending, Reclaim
from treadle.stores.memory.adapter import MemoryStore

FIRST = "intervals.the_first_copy_is_due_at_once"
KEPT = "intervals.an_unfinished_copy_is_kept"
RESTART = "intervals.a_restart_keeps_the_due_time"
RECLAIMED = "intervals.reclaiming_makes_the_next_copy_too"
SECOND = "intervals.there_is_never_a_second_unfinished_copy"
OUTAGE = "intervals.after_an_outage_it_runs_once"
DELETED = "intervals.a_deleted_copy_is_put_back_due_as_before"
FIRST_DELETED = "intervals.a_deleted_first_copy_is_put_back_too"
HURRIED = "intervals.a_copy_that_was_run_now_and_deleted_is_due_when_it_was_hurried"
LAST_WINS = "intervals.the_last_registration_wins"
TWICE = "intervals.of_one_interval_twice_in_a_call_the_last_wins"
REMEMBERED = "intervals.intervals_answers_what_is_remembered"
MIXED = "intervals.ensuring_mixes_new_and_waiting_intervals"
MANY = "intervals.many_processes_register_one_copy"
BY_HAND = "intervals.a_job_that_is_enqueued_by_hand_is_no_copy"


class Ensurer(MemoryStore):
    """A store that puts copies back by the parts that this has, each of which can be another."""

    def due(self, interval, last, now):
        return last or now

    def is_copy(self, job, interval):
        return (job.name, job.key) == (interval.job.name, interval.job.key) and job.state in UNFINISHED

    def registered(self, interval):
        return self._ledger.intervals.register(interval)

    async def hold_up(self):
        pass

    async def found(self, copy, interval, now):
        return None

    async def ensure(self, intervals, *, now=None):
        return [await self.ensure_one(interval, id_, now) for interval, id_ in intervals]

    async def ensure_one(self, interval, id_, now):
        last = self.registered(interval)
        every = await self.find(EVERYTHING, limit=1000)
        copies = [job for job in every if self.is_copy(job, interval)]
        await self.hold_up()
        if copies:
            return await self.found(copies[0], interval, now)
        return await self.put_back(interval, id_, self.due(interval, last, now), now)

    async def put_back(self, interval, id_, run_at, now):
        copy = replace(interval.job, id=id_, run_at=run_at)
        held = any(Ensurer.is_copy(self, job, interval) for job in await self.find(EVERYTHING, limit=1000))
        [answer] = await self.enqueue([replace(copy, key=None) if held else copy], now=now)
        self._ledger.intervals.remember_due(answer.job)
        return answer


def caught_in_ensuring(broken, *tests):
    """As `caught`, and each test passes on `Ensurer` itself, so that it is the mutation that is caught."""
    for test in tests:
        if test != MODEL:
            run(Ensurer, test)
    caught(broken, *tests)


def test_a_store_that_makes_the_first_copy_due_after_an_interval_is_caught():
    class Broken(Ensurer):
        def due(self, interval, last, now):
            return last or now + timedelta(seconds=interval.seconds)

    caught_in_ensuring(Broken, FIRST, FIRST_DELETED)


def test_a_store_that_counts_the_interval_from_each_start_is_caught():
    class Broken(Ensurer):
        async def found(self, copy, interval, now):
            if copy.state is State.PENDING:
                due = now + timedelta(seconds=interval.seconds)
                self._ledger.jobs[copy.id] = replace(copy, run_at=due)

    caught_in_ensuring(Broken, RESTART, KEPT)


def test_a_store_that_answers_a_registration_with_the_copy_that_waits_is_caught():
    class Broken(Ensurer):
        async def found(self, copy, interval, now):
            return Enqueued(copy.id, False, copy)

    caught_in_ensuring(Broken, KEPT, LAST_WINS, MIXED, MANY)


def test_a_store_that_changes_the_copy_that_waits_is_caught():
    class Broken(Ensurer):
        async def found(self, copy, interval, now):
            self._ledger.jobs[copy.id] = replace(copy, payload_json=interval.job.payload_json)

    caught_in_ensuring(Broken, LAST_WINS)


def test_a_store_that_takes_no_running_copy_for_one_is_caught():
    class Broken(Ensurer):
        def is_copy(self, job, interval):
            return super().is_copy(job, interval) and job.state is State.PENDING

    caught_in_ensuring(Broken, KEPT)


def test_a_store_that_takes_any_job_of_that_name_for_the_copy_is_caught():
    class Broken(Ensurer):
        def is_copy(self, job, interval):
            return job.name == interval.job.name and job.state in UNFINISHED

    caught_in_ensuring(Broken, BY_HAND)


def test_a_store_that_looks_for_a_copy_and_then_makes_one_is_caught():
    class Broken(Ensurer):
        async def hold_up(self):
            await asyncio.sleep(0)

    caught_in_ensuring(Broken, MANY)


def test_a_store_that_makes_up_what_was_missed_is_caught():
    class Broken(Ensurer):
        async def found(self, copy, interval, now):
            if copy.state is State.PENDING:
                missed = int((now - copy.run_at).total_seconds() / interval.seconds)
                new = interval.copy(copy.id[:-4], 0.0)
                again = [replace(new, id=f"{new.id}{number:04x}", key=None) for number in range(0xF000, 0xF000 + missed)]
                await self.enqueue(again, now=now)

    caught_in_ensuring(Broken, OUTAGE)


def test_a_store_that_remembers_no_first_copy_is_caught():
    class Broken(Ensurer):
        def __init__(self):
            super().__init__()
            self.ended = set()

        def due(self, interval, last, now):
            return last if last and interval.schedule in self.ended else now

        async def finish(self, endings, **options):
            self.ended |= {one.following.schedule for one in endings if one.following}
            return await super().finish(endings, **options)

    caught_in_ensuring(Broken, FIRST_DELETED)


def test_a_store_that_forgets_when_a_copy_was_hurried_to_is_caught():
    class Broken(Ensurer):
        async def run_now(self, which, **options):
            self.before = dict(self._ledger.intervals._due)
            return await super().run_now(which, **options)

        def due(self, interval, last, now):
            return getattr(self, "before", {}).get(interval.schedule, last) or now

    caught_in_ensuring(Broken, HURRIED)


def test_a_store_that_puts_a_copy_back_an_interval_later_is_caught():
    class Broken(Ensurer):
        def due(self, interval, last, now):
            return last + timedelta(seconds=interval.seconds) if last else now

    caught_in_ensuring(Broken, DELETED, FIRST_DELETED, HURRIED)


def test_a_store_that_keeps_the_first_of_one_call_is_caught():
    class Broken(Ensurer):
        async def ensure(self, intervals, **options):
            first = {}
            for interval, id_ in intervals:
                first.setdefault(interval.schedule, (interval, id_))
            answers = dict(zip(first, await super().ensure([*first.values()], **options), strict=True))
            return [answers[interval.schedule] for interval, _ in intervals]

    caught_in_ensuring(Broken, TWICE)


def test_a_store_that_makes_a_copy_for_each_of_one_call_is_caught():
    class Broken(Ensurer):
        async def ensure(self, intervals, *, now=None):
            answers = await super().ensure(intervals, now=now)
            made = {one.job.schedule for one in answers if one}
            again = [replace(one.copy(id_, 0.0), key=None) for one, id_ in intervals if one.schedule in made]
            await self.enqueue(again, now=now)
            return answers

    caught_in_ensuring(Broken, TWICE)


def test_a_store_that_leaves_out_the_intervals_that_wait_is_caught():
    class Broken(Ensurer):
        async def ensure(self, intervals, **options):
            return [answer for answer in await super().ensure(intervals, **options) if answer]

    caught_in_ensuring(Broken, MIXED, KEPT)


def test_a_store_that_registers_by_name_is_caught():
    class Broken(Ensurer):
        async def ensure(self, intervals, **options):
            return await super().ensure(sorted(intervals, key=lambda one: one[0].schedule), **options)

    caught_in_ensuring(Broken, MIXED)


@pytest.mark.parametrize(
    "shown",
    [
        lambda found: sorted(found, key=lambda one: one.schedule),
        lambda found: [*found, *found],
        lambda found: [replace(one, seconds=float(int(one.seconds))) for one in found],
        lambda found: [replace(one, job=replace(one.job, payload_json="null")) for one in found],
        lambda found: [replace(one, job=replace(one.job, priority=0)) for one in found],
        lambda found: [replace(one, job=replace(one.job, queue="default")) for one in found],
        lambda found: [replace(one, job=replace(one.job, max_attempts=None)) for one in found],
        lambda found: [replace(one, job=replace(one.job, key=None)) for one in found],
    ],
    ids=["by name", "twice", "whole seconds", "no payload", "no priority", "no queue", "no limit", "no key"],
)
def test_a_store_that_remembers_intervals_otherwise_is_caught(shown):
    class Broken(MemoryStore):
        async def intervals(self, schedules):
            return shown(await super().intervals(schedules))

    caught(Broken, REMEMBERED)


def test_a_store_that_makes_no_next_copy_of_what_is_reclaimed_is_caught():
    class Broken(MemoryStore):
        async def reclaim(self, reclaims, **options):
            return await super().reclaim([Reclaim(one.expired, one.outcome) for one in reclaims], **options)

    caught(Broken, RECLAIMED)


def test_a_store_that_makes_the_next_copy_of_whatever_is_reclaimed_is_caught():
    class Broken(MemoryStore):
        async def reclaim(self, reclaims, *, now=None):
            taken = await super().reclaim(reclaims, now=now)
            await super().enqueue([replace(one.following, key=None) for one in reclaims if one.following], now=now)
            return taken

    caught(Broken, RECLAIMED)


def test_a_store_that_makes_the_next_copy_beside_another_is_caught():
    class Broken(MemoryStore):
        async def finish(self, endings, **options):
            free = [one.following and replace(one.following, key=None) for one in endings]
            pairs = zip(endings, free, strict=True)
            return await super().finish([Ending(one.claim, one.outcome, copy) for one, copy in pairs], **options)

    caught(Broken, SECOND)
