"""Moving everything from one store to another: nothing lost, nothing doubled, and to be taken up again after any end (S13).

Both stores are fenced first, so that neither changes under the copy. The source keeps what it had and is marked as moved; the
target opens when the counts are right. The marks say how far the move is, and repeating a step does no harm: whoever runs
the same move again goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from treadle.core.errors import Conflict, InvalidArgument, StoreError
from treadle.core.job import Job
from treadle.core.transfer import Cargo, Counts, Mark, Side, Stage
from treadle.engine.cargo import KEPT_PAGE, LEFT, RUNNING, counted, pages, size
from treadle.engine.clashes import Clashes, clashes
from treadle.engine.clock import EngineClock
from treadle.engine.ends import End, changed
from treadle.engine.giving_up import GivingUp, given_up
from treadle.engine.pairing import begun, paired, to_empty
from treadle.engine.reclaimer import Reclaimer

__all__ = ["End", "Move", "Report", "Survey"]

POLL = 0.1  # seconds between two looks at what still runs
SHOWN = 5
_logger = logging.getLogger("treadle")


@dataclass(frozen=True, slots=True)
class Report:
    """What a move did. `source` is what there was to move, `target` what has come, `left` the done jobs that stay behind."""

    source: Counts
    target: Counts
    left: int
    already: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """What a move would do, and what is in its way."""

    source: Counts
    left: int
    running: int
    clashes: Clashes
    already: bool = False


class Move:
    """One move between two stores.

    `wait` is how many seconds running jobs get to end; `force` fills a store that another move has left closed, emptying
    it first. `progress` is told what is being done, how much of it, and of how much.
    """

    def __init__(
        self,
        source: End,
        target: End,
        clock: EngineClock,
        new_id: Callable[[], str],
        *,
        wait: float = 0.0,
        force: bool = False,
        progress: Callable[[str, int, int | None], None] | None = None,
    ) -> None:
        self._source, self._target = source, target
        self._clock = clock
        self._new_id = new_id
        self._wait, self._force = wait, force
        self._progress = progress or (lambda doing, done, total: None)
        self._giving_up = GivingUp(source, target, self._progress)

    # -- what can be asked for

    async def survey(self, *, founded: bool) -> Survey:
        """Look, and change nothing. `founded`: the target has tables to look at."""
        source = self._source.store
        theirs = await self._target.store.get_mark() if founded else None
        mine = await source.get_mark()
        under_way = self._begun(mine, theirs)
        found = Clashes()
        if not under_way and founded and not self._to_empty(mine, theirs):
            found = await clashes(source, self._target.store)
        return Survey(
            source=await counted(source),
            left=await source.count(LEFT),
            running=await source.count(RUNNING),
            clashes=found,
            already=mine is not None and mine.stage is Stage.OVER and under_way,
        )

    async def run(self) -> Report:
        """Move everything, or go on with it. Raises `Conflict` before anything is moved where something is in the way.

        After any other error while things are moved both stores stay closed, for the move to be run again or given up. One
        that was being given up is given up first, and begun anew.
        """
        mine, theirs = await self._marks()
        if mine is not None and self._begun(mine, theirs) and given_up(mine, theirs):
            await self._giving_up.of(mine)
            mine, theirs = await self._marks()
        if self._begun(mine, theirs) and mine is not None and theirs is not None and mine.stage is Stage.OVER:
            already = theirs.stage is Stage.OVER
            if not already:
                await self._open(theirs)
            counts = await counted(self._source.store)
            return Report(counts, counts, await self._source.store.count(LEFT), already=already)
        if not self._begun(mine, theirs):
            await self._look_first(mine, theirs)
        mine, theirs = await self._prepared(mine, theirs)
        theirs = await self._filled(mine, theirs)
        report = await self._checked(theirs)
        mine = await self._source.put(replace(mine, stage=Stage.OVER), expect=mine)
        await self._open(theirs)
        return report

    async def undo(self) -> None:
        """Give up a move that is not over: the source takes up work again, what came to the target is removed.

        Raises `Conflict` where there is nothing to give up.
        """
        await self._giving_up.asked_for(*await self._marks())

    # -- whether, and how far

    async def _marks(self) -> tuple[Mark | None, Mark | None]:
        return await self._source.store.get_mark(), await self._target.store.get_mark()

    def _begun(self, mine: Mark | None, theirs: Mark | None) -> bool:
        return begun(mine, theirs, self._source.name, self._target.name, force=self._force)

    def _to_empty(self, mine: Mark | None, theirs: Mark | None) -> bool:
        return to_empty(mine, theirs, self._target.name, force=self._force)

    async def _look_first(self, mine: Mark | None, theirs: Mark | None) -> None:
        """Refuse what can be refused while both stores are at work, so that neither is disturbed."""
        if self._wait <= 0:
            for end in (self._source, self._target):
                await self._reclaim(end)
                if running := await end.store.find(RUNNING, limit=SHOWN + 1):
                    raise _runs(end, running)
        if not self._to_empty(mine, theirs):
            found = await clashes(self._source.store, self._target.store)
            if found.number and await self._same(mine):
                raise self._one_store()
            self._refuse(found)

    async def _same(self, mine: Mark | None) -> bool:
        """Whether both are one store under two names: what is put into one is seen in the other."""
        probe = Mark(self._new_id(), Side.SOURCE, Stage.DRAINING, self._target.name, before=_bare(mine))
        await self._source.put(probe, expect=mine)
        try:
            return await self._target.store.get_mark() == probe
        finally:
            await self._source.store.put_mark(mine, expect=probe)

    def _one_store(self) -> InvalidArgument:
        return InvalidArgument(f"{self._source.name} and {self._target.name} are the same store")

    # -- fencing both

    async def _prepared(self, mine: Mark | None, theirs: Mark | None) -> tuple[Mark, Mark]:
        """Both stores sealed, the target counted as it was. Where that fails, and nothing was put in yet, both open again."""
        fresh = Mark(self._new_id(), Side.SOURCE, Stage.DRAINING, self._target.name, before=_bare(mine))
        known = mine
        if mine is None or mine.side is Side.TARGET:
            mine = fresh
        try:
            if mine is fresh:
                await self._source.put(fresh, expect=known)
            if not paired(mine, theirs):
                seen = await self._target.store.get_mark()
                if seen == mine:
                    raise self._one_store()
                emptying = self._to_empty(mine.before, seen)
                marked = Mark(mine.move, Side.TARGET, Stage.DRAINING, self._source.name, emptying=emptying, before=_bare(seen))
                theirs = await self._target.put(marked, expect=seen)
            assert theirs is not None
            mine = await self._sealed(self._source, mine)
            theirs = await self._sealed(self._target, theirs)
            if theirs.base is None:
                theirs = await self._based(theirs)
        except (Conflict, InvalidArgument, StoreError, asyncio.CancelledError):
            with suppress(Conflict, StoreError):  # what is told is why it could not go on
                await self._giving_up.back(mine, theirs)
            raise
        return mine, theirs

    async def _sealed(self, end: End, mark: Mark) -> Mark:
        """Closed to everything but the move, once no job runs."""
        if mark.stage is not Stage.DRAINING:
            if await end.store.get_mark() != mark:
                raise changed()
            return mark
        sealed = replace(mark, stage=Stage.SEALED)
        deadline = asyncio.get_running_loop().time() + self._wait
        while True:
            await self._reclaim(end)
            if await end.store.put_mark(sealed, expect=mark):
                return sealed
            if await end.store.get_mark() != mark:
                raise changed()
            running = await end.store.find(RUNNING, limit=SHOWN + 1)
            if running and asyncio.get_running_loop().time() >= deadline:
                raise _runs(end, running)
            self._progress(f"Waiting for running jobs of {end.name}", await end.store.count(RUNNING), None)
            await asyncio.sleep(POLL)

    async def _reclaim(self, end: End) -> None:
        """Take expired leases back, as any worker would (E21)."""
        reclaimer = Reclaimer(
            end.store,
            self._clock,
            _logger,
            POLL,
            lambda interval: interval.copy(self._new_id(), interval.seconds),
            lambda: None,
        )
        await reclaimer.run_once()

    async def _based(self, theirs: Mark) -> Mark:
        """Emptied of leftovers, looked through for what is in the way, and counted."""
        target = self._target.store
        if theirs.emptying:
            await self._giving_up.take_out(target, theirs)
        self._refuse(await clashes(self._source.store, target))
        place: tuple[str, str] | None = None
        while page := await target.kept_documents(after=place, limit=KEPT_PAGE):
            gone = [one for one in page if await target.get_document(one.namespace, one.document.key) is None]
            if gone:  # expired: they would be in the way of those to come
                await target.remove(Cargo(documents=gone), expect=theirs)
            place = (page[-1].namespace, page[-1].document.key)
        own = tuple([name async for names in self._interval_names() for name in names & await self._known(names)])
        base = replace(theirs, emptying=False, base=await counted(target), own=own)
        return await self._target.put(base, expect=theirs)

    # -- copying

    async def _filled(self, mine: Mark, theirs: Mark) -> Mark:
        total = (await counted(self._source.store)).total
        done = 0
        async for cargo in pages(self._source.store):
            await self._target.store.restore(cargo, expect=theirs, now=self._clock.for_store())
            done += size(cargo)
            self._progress("Moving", done, total)
        return theirs

    async def _checked(self, theirs: Mark) -> Report:
        """The counts of both ends, which must agree in every kind."""
        assert theirs.base is not None
        source, target = await counted(self._source.store), (await counted(self._target.store)).less(theirs.base)
        target = replace(target, intervals=source.intervals) if await self._has_intervals() else target
        if source != target:
            if await self._target.store.get_mark() != theirs:
                raise changed()
            wrong = [
                f"{number:,} {kind} in the source, {target.as_dict()[kind]:,} in the target"
                for kind, number in source.as_dict().items()
                if number != target.as_dict()[kind]
            ]
            raise StoreError(
                f"the counts do not agree: {'; '.join(wrong)}: both stores stay closed; run the move again, or --undo"
            )
        return Report(source, target, await self._source.store.count(LEFT))

    async def _has_intervals(self) -> bool:
        """Whether every interval of the source is in the target, which may have known some of them before."""
        return all([await self._known(names) == names async for names in self._interval_names()])

    async def _interval_names(self) -> AsyncIterator[set[str]]:
        """The names of the source's intervals, in pages."""
        name = ""
        while page := await self._source.store.kept_intervals(after=name, limit=KEPT_PAGE):
            yield {one.interval.schedule for one in page}
            name = page[-1].interval.schedule

    async def _known(self, names: set[str]) -> set[str]:
        """Those of them that the target has."""
        return {interval.schedule for interval in await self._target.store.intervals(sorted(names))}

    # -- the end

    async def _open(self, theirs: Mark) -> None:
        await self._target.put(replace(theirs, stage=Stage.OVER), expect=theirs)

    def _refuse(self, found: Clashes) -> None:
        if found.number:
            shown = "; ".join(found.known[:SHOWN])
            more = f"; and {found.number - SHOWN:,} more" if found.number > SHOWN else ""
            raise Conflict(
                f"{self._target.name} holds what is in the way, and nothing was moved: {shown}{more}; "
                "delete it in one of the two, or move into an empty store"
            )


def _bare(mark: Mark | None) -> Mark | None:
    """The mark without what it replaced itself."""
    return None if mark is None else replace(mark, before=None, base=None, own=())


def _runs(end: End, running: list[Job]) -> Conflict:
    shown = ", ".join(f"{job.name} {job.id} on {job.worker}" for job in running[:SHOWN])
    more = ", and more" if len(running) > SHOWN else ""
    return Conflict(
        f"jobs still run in {end.name}, and nothing was moved: {shown}{more}; stop its workers, or wait for them with --wait"
    )
