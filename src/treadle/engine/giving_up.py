"""Giving a move up: what came to the target is removed, and both stores take up work again (S13).

The source's mark goes first, and for good: a mover that is still at work, whatever it has counted, cannot end the move then,
and one that finds the source so gives the move up too before it begins another. So a move is either over or given up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from treadle.core.errors import Conflict, StoreError
from treadle.core.transfer import Mark, Movable, Side, Stage
from treadle.engine.cargo import counted, pages, size
from treadle.engine.ends import End
from treadle.engine.pairing import paired


class GivingUp:
    """What gives up moves between two stores. `progress` is told what is being done, and how much of it."""

    def __init__(self, source: End, target: End, progress: Callable[[str, int, int | None], None]) -> None:
        self._source, self._target = source, target
        self._progress = progress

    async def asked_for(self, mine: Mark | None, theirs: Mark | None) -> None:
        """Give up what the marks tell of. Raises `Conflict` where that is over, or nothing."""
        source, target = self._source.name, self._target.name
        if theirs is not None and self._left_behind(mine, theirs) and await self._holds_nothing(theirs):
            await self._target.put_back(theirs)
            if mine is None or mine.side is Side.TARGET:
                return
        if mine is None or mine.side is Side.TARGET:
            raise Conflict(f"{source} is not being moved: there is nothing to give up")
        if mine.stage is Stage.OVER:
            raise Conflict(f"the move to {mine.other} is over: to go back, move from there to {source}")
        if not paired(mine, theirs) and mine.other != target:
            raise Conflict(f"{source} is being moved to {mine.other}, not to {target}")
        await self.of(mine)

    async def of(self, mine: Mark, *, blindly: bool = False) -> None:
        """Give up the move that the source has this mark of; repeated after any end, it goes on.

        `blindly` opens the source even where the target cannot be reached, as long as nothing is known to be in there: the
        move can come to no end then, and whoever asks for it to be given up opens the target too.
        """
        mine = await self._source.put(replace(mine, emptying=True), expect=mine)
        theirs = None
        try:
            while (theirs := await self._target.store.get_mark()) is not None and paired(mine, theirs):
                # A mark of its own here too, so that the mover can put nothing in any more, and once more where that comes
                # a step further just then.
                emptied = replace(theirs, emptying=True)
                if await self._target.store.put_mark(emptied, expect=theirs):
                    if theirs.base is not None:
                        await self.take_out(self._source.store, emptied)
                    if await self._target.store.put_mark(emptied.before, expect=emptied):
                        break
        except StoreError:
            if not blindly or (theirs is not None and theirs.base is not None):
                raise
        await self._source.put_back(mine)

    async def back(self, mine: Mark, theirs: Mark | None) -> None:
        """Open both again after a failure, if nothing was put in; `theirs` is the target's mark as the mover knows it."""
        try:
            theirs = await self._target.store.get_mark()
        except StoreError:
            pass  # it cannot be reached, and that may well be the failure
        if theirs is not None and paired(mine, theirs) and theirs.base is not None:
            return
        current = await self._source.store.get_mark()
        if current is None or current.move != mine.move:  # given up by somebody before this mover came to the target
            if theirs is not None and paired(mine, theirs):
                await self._target.put_back(theirs)
        elif current.stage is not Stage.OVER:
            await self.of(current, blindly=True)

    async def take_out(self, listed: Movable, theirs: Mark) -> None:
        """Remove from the target what there is in that store, but for the target's own intervals."""
        done = 0
        async for whole in pages(listed):
            cargo = replace(whole, intervals=[one for one in whole.intervals if one.interval.schedule not in theirs.own])
            await self._target.store.remove(cargo, expect=theirs)
            done += size(cargo)
            self._progress("Removing", done, None)

    def _left_behind(self, mine: Mark | None, theirs: Mark) -> bool:
        """Whether the target is closed by a move from the source that was given up there."""
        ours = theirs.side is Side.TARGET and theirs.stage is not Stage.OVER and theirs.other == self._source.name
        return ours and (mine is None or mine.move != theirs.move)

    async def _holds_nothing(self, theirs: Mark) -> bool:
        """Whether nothing of that move is in the target."""
        return theirs.base is None or theirs.base == await counted(self._target.store)


def given_up(mine: Mark, theirs: Mark | None) -> bool:
    """Whether somebody has begun to give the move up. In older versions only the target's mark said so."""
    return mine.emptying or (theirs is not None and theirs.emptying and theirs.base is not None)
