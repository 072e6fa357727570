"""Stores broken in which firings they let happen, each caught by the contract test that speaks of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from broken_schedules import Firer, caught_in_firing

from treadle.core.job import Enqueued

STEP = "firings.a_firing_enqueues_its_job_and_advances_the_schedule"
ORDER = "firings.a_batch_is_answered_in_its_order"
TWICE = "firings.the_same_time_twice_in_a_call_fires_once"
BESIDE = "firings.a_firing_that_is_over_does_not_hinder_another_of_its_schedule"
CHANGED = "firings.a_firing_that_was_read_before_a_change_does_nothing"
BEGUN_ANEW = "firings.a_firing_that_was_read_before_a_new_beginning_does_nothing"
DELETED = "firings.a_firing_that_was_deleted_blocks_no_later_one"
ONE_WINS = "firings.of_many_that_fire_the_same_time_one_wins"
NEVER_BOTH = "firings.a_change_and_a_firing_never_both_win"
WHOLE = "firings.a_firing_is_seen_whole_or_not_at_all"


# -- what was read before


def test_a_store_that_fires_whatever_the_revision_is_caught():
    class Broken(Firer):
        def fits(self, current, read):
            return not current.paused and current.next_at == read.next_at

    caught_in_firing(Broken, CHANGED, BESIDE)


def test_a_store_that_fires_whatever_the_time_is_caught():
    class Broken(Firer):
        def fits(self, current, read):
            return not current.paused and current.revision == read.revision

    caught_in_firing(Broken, BEGUN_ANEW)


def test_a_store_that_compares_times_by_the_second_is_caught():
    class Broken(Firer):
        def fits(self, current, read):
            moments = [one.next_at and one.next_at.replace(microsecond=0) for one in (current, read)]
            return not current.paused and current.revision == read.revision and moments[0] == moments[1]

    caught_in_firing(Broken, BEGUN_ANEW)


def test_a_store_that_takes_no_time_for_any_time_is_caught():
    class Broken(Firer):
        def fits(self, current, read):
            return super().fits(replace(current, next_at=current.next_at or read.next_at), read)

    caught_in_firing(Broken, BEGUN_ANEW)


def test_a_store_that_fires_paused_schedules_is_caught():
    class Broken(Firer):
        def fits(self, current, read):
            return super().fits(replace(current, paused=False), read)

    caught_in_firing(Broken, CHANGED)


def test_a_store_that_goes_by_the_pause_that_was_read_is_caught():
    class Broken(Firer):
        def fits(self, current, read):
            return super().fits(replace(current, paused=read.paused), read)

    caught_in_firing(Broken, CHANGED)


def test_a_store_that_fires_what_is_no_longer_there_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            if await self.get_schedule(firing.schedule.name) is None:
                return await self.enqueued(firing, now)
            return await super().fire_one(firing, now)

    caught_in_firing(Broken, CHANGED)


def test_a_store_that_brings_a_deleted_schedule_back_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            if await self.get_schedule(firing.schedule.name) is None:
                self._schedules._kept[firing.schedule.name] = firing.schedule
                return None
            return await super().fire_one(firing, now)

    caught_in_firing(Broken, CHANGED)


def test_a_store_that_enqueues_and_then_looks_whether_it_may_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            await self.enqueue([replace(firing.job, key=None)], now=now)
            answer = await super().fire_one(firing, now)
            return answer and replace(answer, created=True)

    caught_in_firing(Broken, CHANGED, BEGUN_ANEW)


def test_a_store_that_advances_what_it_does_not_fire_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            answer = await super().fire_one(firing, now)
            current = await self.get_schedule(firing.schedule.name)
            if answer is None and current is not None:
                await self.put_schedule(replace(current, next_at=firing.next_at))
            return answer

    caught_in_firing(Broken, CHANGED, BEGUN_ANEW, ORDER, TWICE)


# -- at the same moment


def test_a_store_that_looks_and_then_fires_is_caught():
    class Broken(Firer):
        async def hold_up(self):
            await asyncio.sleep(0)

    caught_in_firing(Broken, ONE_WINS, NEVER_BOTH)


@pytest.mark.parametrize("job_first", [True, False], ids=["job first", "advance first"])
def test_a_store_that_fires_in_two_steps_is_caught(job_first):
    class Broken(Firer):
        async def fire_one(self, firing, now):
            current = await self.get_schedule(firing.schedule.name)
            if current is None or not self.fits(current, firing.schedule):
                return None
            answer = await self.enqueued(firing, now) if job_first else Enqueued(firing.job.id, True, None)
            if not job_first:
                self._schedules._kept[current.name] = self.advanced(current, firing, answer, now)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if job_first:
                self._schedules._kept[current.name] = self.advanced(current, firing, answer, now)
            return answer if job_first else await self.enqueued(firing, now)

    caught_in_firing(Broken, WHOLE)


def test_a_store_that_advances_and_never_enqueues_is_caught():
    class Broken(Firer):
        async def enqueued(self, firing, now):
            return Enqueued(firing.job.id, True, firing.job.stored(now, now))

    caught_in_firing(Broken, STEP, WHOLE, NEVER_BOTH, DELETED)


def test_a_store_that_tells_the_losers_of_the_winners_job_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            answer = await super().fire_one(firing, now)
            for job in [] if answer else await self.unfinished():
                if job.key == firing.job.key:
                    return Enqueued(job.id, False, job)
            return answer

    caught_in_firing(Broken, ONE_WINS, CHANGED, TWICE)
