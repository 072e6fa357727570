"""Room for clients: how many may be connected, and who makes way for others (F14)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from treadle.functions.http.descriptors import for_clients
from treadle.functions.seldom import SeldomLog

_EXTRA = 64  # at most so many more are let in, to be told that there is no room


class Guest(Protocol):
    """A connection, as far as room is concerned."""

    def make_way(self) -> None:
        """End: there is no request to be answered."""


class Room:
    """Counts the connections of one server. Above `most`, the one makes way that has been without a request for longest.

    Where all have one, those that come are served no request, but told so; and where there are too many even for that, none
    is let in, so that they wait in the system's queue.
    """

    def __init__(self, most: int) -> None:
        self.most = min(most, for_clients())
        self.changed: Callable[[], None] = _nothing  # called when it may be closed no more
        self._inside = 0
        self._extra = min(_EXTRA, max(1, self.most // 8))
        self._resting: dict[Guest, None] = {}  # in the order in which they began to
        self._log = SeldomLog(logging.getLogger("treadle"))

    @property
    def crowded(self) -> bool:
        """Whether more are there than are served."""
        return self._inside > self.most

    @property
    def full(self) -> bool:
        """Whether nobody is let in before another has gone."""
        return self._inside >= self.most + self._extra

    @property
    def closed(self) -> bool:
        """Whether it is full, and nobody would make way."""
        return self.full and not self._resting

    def enter(self) -> None:
        """A client is let in."""
        self._inside += 1
        if self.crowded and not self.clear():
            self._log.warning("%d clients are connected, the most that are served at once; more are answered 503", self.most)

    def leave(self) -> None:
        """A client has gone."""
        self._inside -= 1
        self.changed()

    def rest(self, guest: Guest) -> None:
        """It has no request, or only the beginning of a head: whoever sends that slowly must not keep out others."""
        self._resting[guest] = None
        if self.full:
            self.changed()

    def wake(self, guest: Guest) -> None:
        """It has one, or has gone."""
        self._resting.pop(guest, None)

    def clear(self) -> bool:
        """Have the one make way that has been without a request for longest; False where all have one."""
        for guest in self._resting:
            del self._resting[guest]
            guest.make_way()
            return True
        return False


def _nothing() -> None:
    pass
