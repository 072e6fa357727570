"""Whether two marks belong together: what they say of a move that is asked for, and whether a store may be filled (S13)."""

from __future__ import annotations

from treadle.core.errors import Conflict, StoreMoved
from treadle.core.transfer import Mark, Side, Stage


def paired(mine: Mark, theirs: Mark | None) -> bool:
    """Whether they are the two ends of one move."""
    return theirs is not None and (mine.side, theirs.side) == (Side.SOURCE, Side.TARGET) and mine.move == theirs.move


def begun(mine: Mark | None, theirs: Mark | None, source: str, target: str, *, force: bool) -> bool:
    """Whether this very move is under way or over. Raises where the source, or the target, is not free for it."""
    if mine is None or (mine.side is Side.TARGET and mine.stage is Stage.OVER):
        to_empty(mine, theirs, target, force=force)
        return False
    if mine.side is Side.TARGET:
        raise Conflict(f"{source} is being filled by a move from {mine.other}: finish that, or give it up, first")
    if paired(mine, theirs):
        return True
    if mine.stage is Stage.OVER:
        raise StoreMoved(f"{source} was moved to {mine.other}: move from there")
    if mine.other != target:
        raise Conflict(f"{source} is being moved to {mine.other}: finish that move, or give it up with --undo, first")
    to_empty(mine.before, theirs, target, force=force)
    return True


def to_empty(mine: Mark | None, theirs: Mark | None, target: str, *, force: bool) -> bool:
    """Whether leftovers of an earlier move have to go from the target first. Raises `Conflict` where it may not be filled.

    `mine` is what the source was marked with before this move.
    """
    if theirs is None or (theirs.side is Side.TARGET and theirs.stage is Stage.OVER):
        return False
    if theirs.side is Side.SOURCE and theirs.stage is not Stage.OVER:
        raise Conflict(f"{target} is itself being moved to {theirs.other}: finish that, or give it up, first")
    if theirs.side is Side.SOURCE and mine is not None and mine.move == theirs.move:
        return True  # the way back
    if force:
        return True
    if theirs.side is Side.TARGET:
        raise Conflict(
            f"{target} is being filled by a move from {theirs.other}: finish that, or give it up, first; "
            "--force empties it and begins anew"
        )
    raise Conflict(
        f"{target} was moved to {theirs.other}, and only that store may be moved back into it; "
        "--force removes what it still holds of before"
    )
