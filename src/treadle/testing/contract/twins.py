"""Twins: a store and the model beside it, and the claims and sightings that random steps go back to (S3)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any, TypeVar

from treadle.core.filter import EVERYTHING
from treadle.core.job import NewJob
from treadle.core.store import Claim, Expired, Store
from treadle.testing.clock import ManualClock
from treadle.testing.contract import expect
from treadle.testing.contract.model import Model
from treadle.testing.factory import JobFactory
from treadle.testing.opening import StoreFactory, opened

T = TypeVar("T")


class Twins:
    """A store of its own, on an event loop of its own, and a model; each step is done to both."""

    def __init__(self, factory: StoreFactory) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self.store: Store = self.run(self._stack.enter_async_context(opened(factory)))
        self.model = Model()
        self.clock = ManualClock()
        self.make = JobFactory(self.store, self.clock)
        self.enqueued: list[NewJob] = []
        self.claims: list[Claim] = []
        self.seen: list[Expired] = []

    @property
    def now(self) -> datetime:
        """The moment that both have come to."""
        return self.clock.now()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine to its end."""
        return self._runner.run(work)

    def close(self) -> None:
        """Close the store, then the loop."""
        try:
            self.run(self._stack.aclose())
        finally:
            self._runner.close()

    def claim(self, back: int) -> Claim:
        """The claim that many claims ago, whether it still holds or not; one of nobody where there was none."""
        return _back(self.claims, back) or Claim(self.make.id(), "token-of-nobody")

    def sighting(self, back: int) -> Expired | None:
        """The expired job that was seen that many sightings ago."""
        return _back(self.seen, back)

    def following(self, job_id: str) -> NewJob | None:
        """The next copy, where the job belongs to an interval."""
        job = self.model.job(job_id)
        interval = self.model.intervals.get(job.schedule or "") if job is not None else None
        return interval.copy(self.make.id(), interval.seconds) if interval is not None else None

    def compare(self) -> None:
        """Field by field, each job of the store must be that of the model, and the tally must be of these jobs."""
        stored = self.run(self.store.find(EVERYTHING, limit=10_000, now=self.now))
        expected = sorted(self.model.jobs, key=lambda job: job.id, reverse=True)
        expect.same_ids(stored, expected, "the store holds the jobs of the model")
        for job, wanted in zip(stored, expected, strict=True):
            expect.same_job(job, wanted, "each stored job is that of the model")
        expect.same_tally(self.run(self.store.tally()), expected, "the tally counts the jobs of the model")


def _back(things: Sequence[T], back: int) -> T | None:
    return things[-1 - back % len(things)] if things else None
