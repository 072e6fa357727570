"""Reading: what changes nothing (L5, L6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Job, State
from treadle.core.store import Stats, Tally
from treadle.stores.redis import record, wire
from treadle.stores.redis.link import Link
from treadle.stores.redis.moment import present, surely_at
from treadle.stores.redis.pieces import pieces
from treadle.stores.redis.walk import PAGE, Walk

DUPLICATES_SHOWN = 10
NAMES_AT_ONCE = 1000
JOBS_AT_ONCE = 1000


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
            next_run_at=min((await self._soonest(sorted(queues))).values(), default=None),
            duplicates={name: -int(number) for name, number in zip(shown[::2], shown[1::2], strict=True)},
            duplicate_names=duplicate_names,
        )

    async def tally(self) -> Tally:
        """Jobs by queue, name and state: pending ones from counts that are kept, the others read, a piece at a time (S8)."""
        queues = (await self._walk.sources(EVERYTHING, None)).queues
        counts: dict[tuple[str, str, State], int] = {}
        for state in (State.DONE, State.DEAD, State.RUNNING):
            counts |= await self._counts(state, queues)
        return Tally(counts | await self._pending_counts(queues), await self._soonest(queues))

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

    async def _soonest(self, queues: Sequence[str]) -> dict[str, datetime]:
        earliest: dict[str, str] = {}
        seen = 0
        while queues:
            found, finished, seen = await self._link.call("soonest", "", seen, NAMES_AT_ONCE, *wire.listed(queues))
            for queue, moment in zip(queues, found, strict=False):
                if moment is not None:
                    earliest[queue] = min(moment, earliest.get(queue, moment))
            queues = queues[finished:]
        return {queue: surely_at(moment) for queue, moment in earliest.items()}

    async def _pending_counts(self, queues: Sequence[str]) -> dict[tuple[str, str, State], int]:
        counts: dict[tuple[str, str, State], int] = {}
        cursor = "0"
        while queues:
            found, finished, cursor = await self._link.call("pending_counts", "", cursor, NAMES_AT_ONCE, *wire.listed(queues))
            for queue, numbers in zip(queues, found, strict=False):
                # A cursor may come past a name twice.
                counts |= {(queue, name, State.PENDING): number for name, number in _pairs(numbers) if number}
            queues = queues[finished:]
        return counts

    async def _counts(self, state: State, queues: Sequence[str]) -> dict[tuple[str, str, State], int]:
        counts: Counter[tuple[str, str, State]] = Counter()
        after = ""
        while queues:
            indexes = [f"ids:{state.value}:{queue}" for queue in queues[:PAGE]]
            found, finished, after = await self._link.call("name_counts", after, JOBS_AT_ONCE, *wire.listed(indexes))
            for queue, numbers in zip(queues, found, strict=False):
                for name, number in _pairs(numbers):
                    counts[queue, name, state] += number
            queues = queues[finished:]
        return dict(counts)


def _pairs(flat: Sequence[Any]) -> Iterator[tuple[str, int]]:
    return zip(flat[::2], flat[1::2], strict=True)
