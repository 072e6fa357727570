"""Capped: as many series as a server can bear, however many names there are; the rest share one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from heapq import nlargest
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

OTHER = "other"
MOST_NAMES = 200
MOST_QUEUES = 50


class Capped(dict[K, V]):
    """A mapping that makes what it misses; from `most` keys on, every new one shares what is made for `other`."""

    def __init__(self, make: Callable[[], V], other: K, most: int = MOST_NAMES) -> None:
        super().__init__()
        self._make = make
        self._other = other
        self._most = most

    def __missing__(self, key: K) -> V:
        if len(self) >= self._most:
            key = self._other
            if key in self:
                return self[key]
        made = self[key] = self._make()
        return made


class Kept(Generic[K]):
    """Which keys of something that is counted anew each time have a series of their own: a series goes on while it can."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: set[K] = set()

    def choose(self, sizes: Mapping[K, int]) -> set[K]:
        """The keys that had a series before and are still there, and the largest of the others, up to the cap."""
        self._keys &= sizes.keys()
        free = self._most - len(self._keys)
        if free > 0:
            self._keys |= set(nlargest(free, sizes.keys() - self._keys, key=sizes.__getitem__))
        return self._keys
