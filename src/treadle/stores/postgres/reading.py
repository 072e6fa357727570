"""What reads and changes nothing (Inspector)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from treadle.core.clock import from_micros
from treadle.core.filter import JobFilter
from treadle.core.job import Job, State
from treadle.core.store import Stats, Tally
from treadle.stores.postgres import rows
from treadle.stores.postgres.part import Part
from treadle.stores.postgres.selection import parameters


class Reading(Part):
    """Looks at jobs; a read whose connection broke is made again."""

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The stored jobs of these ids, in their order."""
        found = {row[0]: rows.job(row) for row in await self._read("get", rows.possible(tuple(ids)))}
        return [found[job_id] for job_id in ids if job_id in found]

    async def find(self, which: JobFilter, *, limit: int, before: str | None = None, now: datetime | None = None) -> list[Job]:
        """Matching jobs, newest id first."""
        if before is not None:
            before = rows.storable(before)
        found = await self._read("find", *parameters(which, now), max(limit, 0), before, patient=True)
        return [rows.job(row) for row in found]

    async def count(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """How many jobs match."""
        [(number,)] = await self._read("count", *parameters(which, now), patient=True)
        return int(number)

    async def stats(self, *, now: datetime | None = None) -> Stats:
        """The aggregate of L6, from indexes alone."""
        [(pending, running, done, dead, next_run_at, names, shown)] = await self._read("stats", patient=True)
        return Stats(
            pending=pending,
            running=running,
            done=done,
            dead=dead,
            next_run_at=None if next_run_at is None else from_micros(next_run_at),
            duplicates=dict(json.loads(shown or "[]")),
            duplicate_names=names,
        )

    async def tally(self) -> Tally:
        """Jobs by queue, name and state, of one moment, from indexes alone but for the running ones (S8)."""
        found = await self._read("tally", patient=True)
        oldest: dict[str, int] = {}
        for queue, *_, run_at in found:
            if run_at is not None:
                oldest[queue] = min(run_at, oldest.get(queue, run_at))
        return Tally(
            counts={(queue, name, State(state)): number for queue, name, state, number, _ in found},
            oldest={queue: from_micros(run_at) for queue, run_at in oldest.items()},
        )

    async def pending_names(self, queues: Sequence[str] | None = None) -> list[str]:
        """The names of pending jobs, sorted (E19)."""
        found = await self._read("pending_names", None if queues is None else rows.possible(tuple(queues)))
        return [name for (name,) in found]

    async def due(self, queues: Sequence[str], *, now: datetime | None = None) -> set[str]:
        """Which of the queues have a job that could be claimed now."""
        return {queue for (queue,) in await self._read("due", now, rows.possible(tuple(queues)))}
