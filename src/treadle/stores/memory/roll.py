"""A roll: entries in order, whose removals cost nothing at the time and are swept out once they are the larger part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

E = TypeVar("E", bound=Any)
SLACK = 256


class Roll(Generic[E]):
    """Append in any order, read in order. An entry goes stale by itself, when `valid` no longer holds for it.

    Whoever makes an entry stale lowers `live`; readers skip stale entries and repetitions.
    """

    __slots__ = ("_ordered", "_valid", "fresh", "live")

    def __init__(self, valid: Callable[[E], bool]) -> None:
        self._valid = valid
        self._ordered: list[E] = []
        self.fresh: list[E] = []
        self.live = 0

    def add(self, entry: E) -> None:
        """Enter it."""
        self.fresh.append(entry)
        self.live += 1

    def ordered(self) -> list[E]:
        """All entries in order, stale ones and repetitions among them; not to be kept over a change."""
        fresh, ordered = self.fresh, self._ordered
        if fresh:
            fresh.sort()
            in_order = not ordered or ordered[-1] <= fresh[0]
            ordered += fresh
            if not in_order:
                ordered.sort()
            self.fresh = []
        return ordered

    def sweep(self) -> None:
        """Drop what is stale if it is more than half, so that the roll never outgrows what it is about."""
        if len(self._ordered) + len(self.fresh) <= 2 * self.live + SLACK:
            return
        if not self.live:
            self._ordered, self.fresh = [], []
            return
        valid = self._valid
        self._ordered = sorted({entry for entry in (*self._ordered, *self.fresh) if valid(entry)})
        self.fresh = []

    def __len__(self) -> int:
        """How many entries are kept, stale ones too."""
        return len(self._ordered) + len(self.fresh)
