"""The ends of a move: a store with the name that messages have for it, and its mark, which changes by compare-and-set (S13)."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.errors import Conflict
from treadle.core.transfer import Mark, Movable


@dataclass(frozen=True, slots=True)
class End:
    """A store, and how messages name it: its URL without a password."""

    store: Movable
    name: str

    async def put(self, mark: Mark, *, expect: Mark | None) -> Mark:
        """Replace the mark. Raises `Conflict` where it is not `expect` any more."""
        if not await self.store.put_mark(mark, expect=expect):
            raise changed()
        return mark

    async def put_back(self, mark: Mark) -> None:
        """Put back what the mark replaced. Raises `Conflict` where it is not there any more."""
        if not await self.store.put_mark(mark.before, expect=mark):
            raise changed()


def changed() -> Conflict:
    """The error of whoever finds that somebody else has gone on with the move, or has given it up."""
    return Conflict("the move has changed under way: is `treadle move` run twice?")
