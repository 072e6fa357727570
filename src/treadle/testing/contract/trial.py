"""One store on trial: what each contract test is handed, with a clock of its own that only the test moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Unpack

from treadle.core.filter import EVERYTHING
from treadle.core.job import Enqueued, Job, NewJob
from treadle.core.outcome import Outcome
from treadle.core.payload import JSON
from treadle.core.store import Claim, Claimed, Demand, Ending, Reclaim, Store
from treadle.testing.clock import ManualClock
from treadle.testing.contract import expect
from treadle.testing.factory import LEASE, WORKER, Held, JobFactory, NewJobOptions
from treadle.testing.opening import StoreFactory


class Trial:
    """A store, the factory that makes jobs on it, and the moment that is passed to each operation as `now`."""

    def __init__(self, store: Store, factory: StoreFactory, model_examples: int) -> None:
        self.store = store
        self.factory = factory
        self.model_examples = model_examples
        self.clock = ManualClock()
        self.make = JobFactory(store, self.clock)

    @property
    def now(self) -> datetime:
        """The moment that the trial has come to."""
        return self.clock.now()

    def at(self, seconds: float) -> datetime:
        """The moment so many seconds from now."""
        return self.now + timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        """Move on."""
        self.clock.advance(seconds)

    def new(self, name: str = "job", payload: JSON = None, **options: Unpack[NewJobOptions]) -> NewJob:
        """A job that is not stored yet."""
        return self.make.new(name, payload, **options)

    async def enqueue(self, *jobs: NewJob) -> list[Enqueued]:
        """Enqueue in one call, checking that each job is answered in its place."""
        answers = await self.store.enqueue(list(jobs), now=self.now)
        expect.equal(len(answers), len(jobs), "enqueue answers each job of its batch, in order")
        return answers

    async def job(self, id: str) -> Job:
        """The stored job, which must exist."""
        found = expect.one(await self.store.get([id]), f"get answers the stored job {id}")
        expect.equal(found.id, id, "get answers the job that was asked for")
        return found

    async def everything(self) -> list[Job]:
        """All stored jobs, newest id first."""
        return await self.store.find(EVERYTHING, limit=10_000, now=self.now)

    async def claim(self, *demands: Demand, token: str | None = None, lease: float = LEASE, worker: str = WORKER) -> Claimed:
        """Claim for these demands."""
        return await self.store.claim(token or self.make.token(), demands, worker=worker, lease=lease, now=self.now)

    async def claimable(self, limit: int = 1000, queues: tuple[str, ...] | None = None) -> list[Job]:
        """What one claim of any name takes."""
        return list((await self.claim(Demand(limit, queues))).jobs)

    async def hold(self, id: str) -> Held:
        """Claim that job, which must be the best of its name in its queue."""
        return await self.make.claimed(await self.job(id))

    async def finish(self, held: Held | Claim, outcome: Outcome, following: NewJob | None = None) -> bool:
        """Finish one claim; whether it still held."""
        claim = held.claim if isinstance(held, Held) else held
        took = await self.store.finish([Ending(claim, outcome, following)], now=self.now)
        expect.that(took in (set(), {claim}), "finish answers only claims that it was given", took)
        return bool(took)

    async def end(self, held: Held, outcome: Outcome, following: NewJob | None = None) -> Job:
        """Finish a claim that must hold, and answer the job as it is stored then."""
        expect.that(await self.finish(held, outcome, following), f"a claim that holds is finished with {outcome}")
        return await self.job(held.claim.id)

    async def reclaim(self, reclaim: Reclaim) -> bool:
        """Reclaim one job; whether it was taken back."""
        return bool(await self.store.reclaim([reclaim], now=self.now))

    async def unchanged(self, before: Sequence[Job], words: str) -> None:
        """Fail where a stored job differs from what it was, or jobs came or went."""
        after = await self.everything()
        expect.same_ids(after, sorted(before, key=lambda job: job.id, reverse=True), words)
        was = {job.id: job for job in before}
        for job in after:
            expect.same_job(job, was[job.id], words)


def pending(job: NewJob, now: datetime, run_at: datetime | None = None) -> Job:
    """The pending job that `job` must become when it is stored at `now`."""
    due = run_at if run_at is not None else job.run_at if job.run_at is not None else now + timedelta(seconds=job.delay)
    return replace(job.stored(now, due))
