"""A roll: entries in order, whose removals cost nothing at the time and are swept out once they are the larger part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

E = TypeVar("E", bound=Any)
SLACK = 64


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
        """All entries in order, stale ones and repetitions among them; not to be kept over a change.

        Stale ones in front are dropped: who deletes oldest first, step by step, would walk over them at each step.
        """
        fresh, ordered, valid = self.fresh, self._ordered, self._valid
        if fresh:
            fresh.sort()
            in_order = not ordered or ordered[-1] <= fresh[0]
            ordered += fresh
            if not in_order:
                ordered.sort()
            self.fresh = []
        if ordered and not valid(ordered[0]):
            del ordered[: next((at for at, entry in enumerate(ordered) if valid(entry)), len(ordered))]
        return ordered

    def sweep(self) -> None:
        """Drop what is stale if it is more than half, so that the roll never outgrows what it is about."""
        if len(self._ordered) + len(self.fresh) <= 2 * self.live + SLACK:
            return
        if not self.live:
            self._ordered, self.fresh = [], []
            return
        # In order first: entries come nearly so, and sorting them then costs little, as does spotting repetitions.
        kept: list[E] = []
        valid, last = self._valid, None
        for entry in self.ordered():
            if entry != last and valid(entry):
                kept.append(entry)
                last = entry
        self._ordered = kept

    def __len__(self) -> int:
        """How many entries are kept, stale ones too."""
        return len(self._ordered) + len(self.fresh)
