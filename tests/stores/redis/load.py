"""A load on a Redis store that a fault is put into: producers and workers that go on through outages, and count."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable

from treadle.core.errors import StoreUnavailable
from treadle.core.filter import JobFilter
from treadle.core.job import FINISHED, Key, NewJob, State
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending, Reclaim
from treadle.core.transitions import on_expired
from treadle.stores.redis import RedisStore

LEASE = 0.5


async def insisted(call, failed: Callable[[], None] = lambda: None):
    """The call's result, however often it takes while the server is away; only for calls that are safe to repeat."""
    while True:
        try:
            return await call()
        except StoreUnavailable:
            failed()
            await asyncio.sleep(0.01)


class Load:
    """So many jobs by two producers, run by three workers. A worker whose claim's answer was lost asks what it holds."""

    def __init__(self, store: RedisStore, jobs: int = 1200) -> None:
        self.store = store
        self.ids = [f"{number:06d}" for number in range(jobs)]
        self.stored: set[str] = set()
        self.runs: Counter[str] = Counter()
        self.done: set[str] = set()
        self.ran_after_done: list[str] = []
        self.outages = 0
        self.progress = asyncio.Event()
        self.tokens = 0

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait for the load to get there; a job that ends counts as progress."""
        async with asyncio.timeout(60):
            while not reached():
                self.progress.clear()
                await self.progress.wait()

    async def run(self, fault: Callable[[Load], object]) -> None:
        """Run all jobs, with the fault beside it; leaves when every job is done."""
        half = len(self.ids) // 2
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            workers = [group.create_task(self.work(number)) for number in range(3)]
            workers.append(group.create_task(self.take_back()))
            producers = [group.create_task(self.produce(part)) for part in (self.ids[:half], self.ids[half:])]
            await fault(self)
            await asyncio.gather(*producers)
            await self.until(lambda: len(self.done) == len(self.ids))
            for worker in workers:
                worker.cancel()

    async def produce(self, ids: list[str]) -> None:
        for first in range(0, len(ids), 20):
            some = [NewJob(id, "work", f'"{id}"', key=Key("idempotency", id)) for id in ids[first : first + 20]]
            await self.insist(lambda some=some: self.store.enqueue(some))  # safe to repeat: the ids are the caller's
            self.stored.update(job.id for job in some)

    async def work(self, worker: int) -> None:
        while True:
            self.tokens += 1
            token = f"{worker}-{self.tokens}"
            try:
                jobs = list((await self.store.claim(token, [Demand(10)], worker=f"w{worker}", lease=LEASE)).jobs)
            except StoreUnavailable:
                self.outages += 1
                jobs = [job for _, job in await self.insist(lambda token=token: self.store.held([token]))]
            if not jobs:
                await asyncio.sleep(0.01)
                continue
            for job in jobs:
                self.runs[job.id] += 1
                if job.id in self.done:
                    self.ran_after_done.append(job.id)
            endings = [Ending(Claim(job.id, token), Done()) for job in jobs]
            with contextlib.suppress(StoreUnavailable):
                self.done.update(claim.id for claim in await self.store.finish(endings))
            self.progress.set()

    async def take_back(self) -> None:
        """Take expired jobs back, and look which ended without our hearing of it."""
        while True:
            expired = await self.insist(lambda: self.store.expired(100))
            reclaims = [Reclaim(one, on_expired(one.job)) for one in expired]
            await self.insist(lambda reclaims=reclaims: self.store.reclaim(reclaims))
            unsure = [id for id in self.runs if id not in self.done]
            self.done.update(
                job.id for job in await self.insist(lambda unsure=unsure: self.store.get(unsure)) if job.state in FINISHED
            )
            self.progress.set()
            await asyncio.sleep(0.05)

    async def insist(self, call):
        def failed() -> None:
            self.outages += 1

        return await insisted(call, failed)

    async def check(self, words: str) -> None:
        """Nothing lost, nothing run after it was done; prints how many ran twice (S10)."""
        jobs = {job.id: job for job in await self.store.find(JobFilter(), limit=len(self.ids) + 1)}
        assert jobs.keys() == set(self.ids), "no job is lost and none is doubled"
        assert {job.state for job in jobs.values()} == {State.DONE}
        assert not self.ran_after_done
        twice = sum(number - 1 for number in self.runs.values())
        print(f"{words}: {len(jobs)} jobs, {self.outages} failed calls, {twice} duplicate runs")
