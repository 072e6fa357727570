"""Operations on many jobs, of several faces, and beside workers (E17, E29, L5)."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from treadle.core.clock import Clock
from treadle.core.filter import JobFilter
from treadle.core.job import NewJob, State
from treadle.core.outcome import Dead, Done
from treadle.core.policies.retention import Retention
from treadle.core.store import Claim, Demand, Ending
from treadle.engine.clock import EngineClock
from treadle.engine.ids import new_ids
from treadle.engine.operations import Operations
from treadle.engine.pruner import Pruner
from treadle.engine.setup import Setup
from treadle.stores.memory import MemoryStore
from treadle.tasks.profile import LIBRARY
from treadle.testing import ManualClock


def test_all_dead_letters_go_round_by_the_rule_of_their_queue_those_of_plugins_and_functions_too():
    async def main():
        store = MemoryStore()
        operations = Operations(store, EngineClock())
        queues = ("default", "functions", "plugin:mail", "plugin:report")
        ids = new_ids(1, len(queues))
        await store.enqueue([NewJob(id, "x", queue=queue, max_attempts=1) for id, queue in zip(ids, queues, strict=True)])
        claimed = await store.claim("t", [Demand(9, queues)], worker="w", lease=60)
        await store.finish([Ending(Claim(job.id, "t"), Dead("broken")) for job in claimed.jobs])
        limited = await operations.redrive_all(JobFilter(), limit=1)
        assert list(limited.revived) == ids[:1]
        rest = await operations.redrive_all(JobFilter())
        assert sorted(rest.revived) == ids[1:]
        return {job.queue: job.attempts for job in await operations.list(JobFilter())}

    assert asyncio.run(main()) == {"default": 0, "functions": 1, "plugin:mail": 0, "plugin:report": 0}


class Busy(MemoryStore):
    """A store whose clock is a day behind this process', and whose workers end, after each step, all that can be run.

    Every job becomes what `outcome` says; `more` new ones come with each step.
    """

    def __init__(self, outcome, more=0, clock: Clock | None = None):
        super().__init__()
        self.outcome, self.more = outcome, more
        self.clock = clock
        self.steps = 0

    def _now(self):
        return datetime.now(UTC) - timedelta(days=1) if self.clock is None else self.clock.now()

    async def work(self):
        now = self._now()
        await super().enqueue([NewJob(id, "x", max_attempts=1) for id in new_ids(1, self.more)], now=now)
        claimed = await super().claim("t", [Demand(9999, ("default", "functions"))], worker="w", lease=60, now=now)
        await super().finish([Ending(Claim(job.id, "t"), self.outcome) for job in claimed.jobs], now=now)

    async def due_schedules(self, limit, *, now=None):
        return await super().due_schedules(limit, now=now or self._now())

    async def redrive(self, which, policy, *, limit=None, now=None):
        return await self._step(await super().redrive(which, policy, limit=limit, now=now or self._now()))

    async def delete(self, which, *, limit=None, now=None):
        return await self._step(await super().delete(which, limit=limit, now=now or self._now()))

    async def _step(self, answer):
        self.steps += 1
        assert self.steps < 20, "there is no end to it"
        await self.work()
        return answer

    async def filled(self, number, queues=("default",)):
        ids = new_ids(1, number)
        jobs = [NewJob(id, "x", queue=queues[place % len(queues)], max_attempts=1) for place, id in enumerate(ids)]
        await self.enqueue(jobs, now=self._now())
        await self.work()
        return ids


@pytest.mark.parametrize("limit", [None, 1100, 700])
def test_a_dead_letter_that_dies_again_meanwhile_is_not_sent_round_twice(limit):
    async def main():
        store, told = Busy(Dead("broken")), []
        ids = await store.filled(1200)
        done = await Operations(store, EngineClock()).redrive_all(JobFilter(), told.append, limit=limit)
        assert list(done.revived) == ids[:limit]
        assert told == [500, min(1000, limit or 1000), *([limit or 1200] if limit != 700 else [])]
        rounds = [len(job.failures) for job in await store.find(JobFilter(), limit=2000)]
        assert sorted(rounds) == [1] * (1200 - len(done.revived)) + [2] * len(done.revived)

    asyncio.run(main())


def test_dead_letters_of_several_rules_are_sent_round_once_each():
    async def main():
        store = Busy(Dead("broken"))
        ids = await store.filled(2400, ("default", "functions"))
        done = await Operations(store, EngineClock()).redrive_all(JobFilter())
        assert list(done.revived) == ids[::2] + ids[1::2]

    asyncio.run(main())


def test_where_the_clock_stands_still_redriving_ends_all_the_same():
    async def main():
        clock = ManualClock()
        store = Busy(Dead("broken"), clock=clock)
        ids = await store.filled(1200)
        done = await Operations(store, EngineClock(clock)).redrive_all(JobFilter())
        assert set(done.revived) <= set(ids) and len(set(done.revived)) == len(done.revived)

    asyncio.run(main())


def test_dead_letters_of_a_clock_that_has_been_set_back_are_sent_round_too():
    async def main():
        store = Busy(Dead("broken"), clock=ManualClock())
        ids = await store.filled(3)
        store.clock = ManualClock(store.clock.now() - timedelta(hours=1))
        assert list((await Operations(store, EngineClock(store.clock)).redrive_all(JobFilter())).revived) == ids

    asyncio.run(main())


def test_a_prune_ends_though_jobs_become_old_enough_as_fast_as_they_are_deleted():
    async def main():
        store, told = Busy(Done(), more=600), []
        await store.filled(600)
        old = await store.count(JobFilter())
        operations = Operations(store, EngineClock())
        which = JobFilter(states=frozenset({State.DONE}), older_than=0)
        assert (await operations.prune(which, dry_run=True)).matched == old
        pruned = await operations.prune(which, progress=told.append)
        assert (pruned.matched, pruned.deleted, told) == (old, old, [500, 1000, old])
        assert await store.count(JobFilter()) == 600 * store.steps

    asyncio.run(main())


def test_the_pruner_ends_though_jobs_become_old_enough_as_fast_as_they_are_deleted():
    async def main():
        store = Busy(Done(), more=600)
        await store.filled(1200)
        profile = replace(LIBRARY, retention=Retention(done=0.0))
        logger = logging.getLogger("treadle")
        setup = Setup(store, None, profile, None, EngineClock(), logger)
        await Pruner(store, EngineClock(), logger, 60, setup, JobFilter()).run_once()
        assert await store.count(JobFilter()) == 600 * store.steps

    asyncio.run(main())
