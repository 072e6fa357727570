"""The enqueuer: hands jobs to the store, those of callers at the same time in one write (E4, E9, E27)."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.job import Enqueued, NewJob
from treadle.core.store import JobStore
from treadle.core.waiting import KeysWait
from treadle.engine.apart import Apart
from treadle.engine.clock import EngineClock
from treadle.engine.gatherer import Gatherer

BATCH = 500
LOAD = 4 * 1024 * 1024  # characters of payload in one shared write


class Enqueuer:
    """Writes new jobs, from one event loop."""

    def __init__(self, store: JobStore, clock: EngineClock) -> None:
        self._store = store
        self._clock = clock
        self._shared = Gatherer(self._write, lambda job: len(job.payload_json), BATCH, LOAD)
        self._apart: Apart | None = None
        if isinstance(store, KeysWait):
            self._waiting: KeysWait = store
            self._apart = Apart(self._write, self._attempt, store.waiting_at_most, BATCH, LOAD)

    async def one(self, job: NewJob) -> Enqueued:
        """Enqueue a job, sharing the write with whoever enqueues at the same time."""
        if self._apart is None or job.key is None:
            return await self._shared.add(job)
        return await self._apart.one(job)

    async def many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue the jobs in one step of their own, all or none (E9)."""
        if not jobs:
            return []
        if self._apart is None or all(job.key is None for job in jobs):
            return await self._write(jobs)
        return await self._apart.many(jobs)

    async def _write(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._store.enqueue(jobs, now=self._clock.for_store())

    async def _attempt(self, jobs: Sequence[NewJob]) -> list[Enqueued] | None:
        return await self._waiting.enqueue_unless_held(jobs, now=self._clock.for_store())
