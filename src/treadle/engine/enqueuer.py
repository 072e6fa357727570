"""The enqueuer: hands jobs to the store, those of callers at the same time in one write (E4, E9, E27)."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.job import Enqueued, NewJob
from treadle.core.store import JobStore
from treadle.engine.clock import EngineClock
from treadle.engine.gatherer import Gatherer

BATCH = 500
LOAD = 4 * 1024 * 1024  # characters of payload in one shared write


class Enqueuer:
    """Writes new jobs, from one event loop."""

    def __init__(self, store: JobStore, clock: EngineClock) -> None:
        self._store = store
        self._clock = clock
        # Apart from each other: a key that is held by somebody's open transaction makes its whole write wait (E10).
        self._keyed = self._gatherer()
        self._plain = self._gatherer()

    def _gatherer(self) -> Gatherer[NewJob, Enqueued]:
        return Gatherer(self._write, lambda job: len(job.payload_json), BATCH, LOAD)

    async def one(self, job: NewJob) -> Enqueued:
        """Enqueue a job, sharing the write with whoever enqueues at the same time."""
        return await (self._plain if job.key is None else self._keyed).add(job)

    async def many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue the jobs in one step of their own, all or none (E9)."""
        return await self._write(jobs) if jobs else []

    async def _write(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._store.enqueue(jobs, now=self._clock.for_store())
