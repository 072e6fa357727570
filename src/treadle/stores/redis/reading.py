"""Reading: what changes nothing (L5, L6)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Job
from treadle.core.store import Stats
from treadle.stores.redis import record, wire
from treadle.stores.redis.link import Link
from treadle.stores.redis.moment import present, surely_at
from treadle.stores.redis.pieces import pieces
from treadle.stores.redis.walk import PAGE, Walk

DUPLICATES_SHOWN = 10
NAMES_AT_ONCE = 1000


class Reading:
    """The part of the store that only looks."""

    _link: Link
    _walk: Walk

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The stored jobs of these ids, in their order."""
        found: dict[str, Job] = {}
        for piece in pieces(ids, PAGE):
            found |= {job.id: job for job in await self._select(EVERYTHING, piece, len(piece), None)}
        return [found[job_id] for job_id in ids if job_id in found]

    async def find(self, which: JobFilter, *, limit: int, before: str | None = None, now: datetime | None = None) -> list[Job]:
        """Matching jobs, newest id first."""
        found: list[Job] = []
        if limit <= 0:
            return found
        async for ids in self._walk.pages(which, newest_first=True, before=before, limit=limit, now=now):
            found += await self._select(which, ids, limit - len(found), now)
            if len(found) >= limit:
                break
        return found

    async def count(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """How many jobs match; from kept counts where the filter allows."""
        if which.ids is None and (which.older_than is not None or which.keyed is None):
            sources = await self._walk.sources(which, now)
            kept = sources.aged if which.older_than is not None else sources.by_state
            if which.names is None:
                if kept is not None:
                    return kept
            elif which == JobFilter(names=which.names) and sources.by_name is not None:
                return sources.by_name
        number = 0
        async for ids in self._walk.pages(which, ordered=False, now=now):
            number += await self._link.call("count", present(now), *wire.predicate(which), *wire.listed(ids))
        return number

    async def stats(self, *, now: datetime | None = None) -> Stats:
        """The aggregate of L6, from counts that are kept."""
        pending, running, done, dead, duplicate_names, shown, queues = await self._link.call("stats", DUPLICATES_SHOWN)
        return Stats(
            pending=pending,
            running=running,
            done=done,
            dead=dead,
            next_run_at=await self._soonest(sorted(queues)),
            duplicates={name: -int(number) for name, number in zip(shown[::2], shown[1::2], strict=True)},
            duplicate_names=duplicate_names,
        )

    async def pending_names(self, queues: Sequence[str] | None = None) -> list[str]:
        """The names of pending jobs, sorted (E19)."""
        names: set[str] = set()
        seen = 0
        while queues is None or queues:
            found, queues, seen = await self._link.call("names", seen, NAMES_AT_ONCE, *wire.listed(queues))
            names.update(found)
        return sorted(names)

    async def due(self, queues: Sequence[str], *, now: datetime | None = None) -> set[str]:
        """Which of the queues have a job that could be claimed now."""
        found: set[str] = set()
        for piece in pieces(queues, PAGE):
            found.update(await self._link.call("due", present(now), *wire.listed(piece)))
        return found

    async def _select(self, which: JobFilter, ids: Sequence[str], most: int, now: datetime | None) -> list[Job]:
        found: list[Job] = []
        while ids and len(found) < most:
            seen, whole, failures = await self._link.call(
                "select", present(now), *wire.predicate(which), most - len(found), *wire.listed(ids)
            )
            found += record.jobs(whole, failures)
            ids = ids[seen:]
        return found

    async def _soonest(self, queues: list[str]) -> datetime | None:
        least: str | None = None
        seen = 0
        while queues:
            found, finished, seen = await self._link.call("soonest", "", seen, NAMES_AT_ONCE, *wire.listed(queues))
            if found is not None and (least is None or found < least):
                least = found
            queues = queues[finished:]
        return None if least is None else surely_at(least)
