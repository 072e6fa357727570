"""Walking to the jobs that a filter means: ids in order, page by page, through the index that has the fewest (S8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge

from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.stores.redis import wire
from treadle.stores.redis.link import Link
from treadle.stores.redis.moment import present, span
from treadle.stores.redis.pieces import pieces

PAGE = 250
LEAST, IDS_AT_ONCE = 32, 4000  # of each index in a page, and of all
RUNNING = JobFilter(states=frozenset({State.RUNNING}))
_ALL = tuple(State)


@dataclass(frozen=True, slots=True)
class Sources:
    """What there is to walk through: queues, how many jobs by state and by name, how many finished long enough ago."""

    queues: Sequence[str]
    by_state: int
    by_name: int | None
    aged: int | None


class Walk:
    """Gives pages of ids among which all matching jobs are; whoever uses them asks the predicate again."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def sources(self, which: JobFilter, now: datetime | None) -> Sources:
        """Look what there is."""
        found = await self._link.call("sources", present(now), *wire.predicate(which))
        queues, by_state, by_name, aged = found
        return Sources(queues, by_state, None if by_name < 0 else by_name, None if aged < 0 else aged)

    async def pages(
        self,
        which: JobFilter,
        *,
        newest_first: bool = False,
        before: str | None = None,
        limit: int | None = None,
        ordered: bool = True,
        now: datetime | None = None,
    ) -> AsyncIterator[Sequence[str]]:
        """Pages in the order of ids, if that is asked for.

        `before` is the id that they come before, `limit` how many matches are wanted, None for all.
        """
        if which.ids is not None:
            for page in pieces(_ordered(which.ids, newest_first, before), PAGE):
                yield page
            return
        sources = await self.sources(which, now)
        # Sorting the old ones costs their number; walking all by id until `limit` are found about limit * total / old.
        if sources.aged is not None and limit is None and not ordered:
            async for page in self.by_age(which, sources, now):
                yield page
            return
        if sources.aged is not None and (limit is None or sources.aged**2 <= limit * sources.by_state):
            old = [job_id async for page in self.by_age(which, sources, now) for job_id in page]
            for page in pieces(_ordered(old, newest_first, before), PAGE):
                yield page
            return
        async for page in self._by_id(_indexes(which, sources), newest_first, before, PAGE if limit is None else limit):
            yield page

    async def by_age(self, which: JobFilter, sources: Sources, now: datetime | None) -> AsyncIterator[Sequence[str]]:
        """Pages of ids that finished long enough ago, in no order of ids; what was given out may be deleted meanwhile."""
        kinds = [kind for kind, keyed in (("keyed", True), ("free", False)) if which.keyed in (None, keyed)]
        age = span(which.older_than or 0.0)
        for state in which.states or ():
            for queue in sources.queues if sources.aged else ():
                for kind in kinds:
                    index = f"finished:{state.value}:{kind}:{queue}"
                    score, last = "", ""
                    while True:
                        page, score, last = await self._link.call("aged", present(now), age, score, last, PAGE, index)
                        if not page:
                            break
                        yield page

    async def _by_id(
        self, indexes: Sequence[str], newest_first: bool, after: str | None, wanted: int
    ) -> AsyncIterator[Sequence[str]]:
        open_indexes = list(indexes)
        while open_indexes:
            most = max(LEAST, min(PAGE, wanted, IDS_AT_ONCE // len(open_indexes)))
            found = await self._link.call("ids", int(newest_first), after or "", most, *wire.listed(open_indexes))
            # Where an index has more, nothing beyond the last id it gave is known yet to be in its turn.
            edges = [ids[-1] for ids in found if len(ids) == most]
            edge = (max(edges) if newest_first else min(edges)) if edges else None
            ids = list(merge(*found, reverse=newest_first))
            if edge is not None:
                ids = [job_id for job_id in ids if (job_id >= edge if newest_first else job_id <= edge)]
            open_indexes = [
                index
                for index, piece in zip(open_indexes, found, strict=True)
                if len(piece) == most or _left(piece, edge, newest_first)
            ]
            for page in pieces(ids, PAGE):
                yield page
            after = edge


def _left(piece: Sequence[str], edge: str | None, newest_first: bool) -> bool:
    """Whether the index gave ids beyond the edge, which are to be asked for again."""
    return bool(piece) and edge is not None and (piece[-1] < edge if newest_first else piece[-1] > edge)


def _indexes(which: JobFilter, sources: Sources) -> list[str]:
    if which.names is not None and sources.by_name is not None and sources.by_name < sources.by_state:
        return [f"named:{name}" for name in which.names]
    states = which.states if which.states is not None else _ALL
    return [f"ids:{state.value}:{queue}" for state in states for queue in sources.queues]


def _ordered(ids: Sequence[str], newest_first: bool, before: str | None) -> list[str]:
    return sorted({job_id for job_id in ids if before is None or job_id < before}, reverse=newest_first)
