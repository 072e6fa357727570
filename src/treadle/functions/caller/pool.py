"""The pool: connections that wait for their next call, and those whose answer is known but not at its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.functions.caller.connection import Connection

PATIENCE = 1.0  # seconds: the loop tells of a closed connection in its next turns

_Shelf = dict["Connection", None]  # in the order in which they were put there


class Pool:
    """All open connections of one caller, by the key of their place.

    It bounds what is kept, never what is open: a call that waited for a connection would be waiting inside its own
    budget. At most `per_host` connections of a place are idle, for at most `idle` seconds each. At most as many are still
    at the rest of an answer; for one more, the one that has been at it longest is closed.
    """

    def __init__(self, per_host: int, idle: float) -> None:
        self.per_host = per_host
        self.idle = idle
        self.closed = False
        self._idle: dict[str, _Shelf] = {}
        self._ending: dict[str, _Shelf] = {}
        self._open: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    def add(self, connection: Connection) -> None:
        """Know a connection that has just been opened."""
        self._open.add(connection)

    def take(self, key: str, now: float) -> Connection | None:
        """The connection that was used last, if it is still good."""
        shelf = self._idle.get(key)
        while shelf:
            connection, _ = shelf.popitem()
            if now - connection.idle_since < self.idle and connection.is_quiet():
                return connection
            connection.drop()
        return None

    def keep(self, connection: Connection) -> None:
        """Take a connection that has nothing to do, or drop it."""
        shelf = self._idle.setdefault(connection.key, {})
        if self.closed or len(shelf) >= self.per_host:
            connection.drop()
            return
        shelf[connection] = None
        if self._sweep is None:
            self._sweep = connection.loop.call_later(self.idle, self._drop_old, connection.loop)

    def end(self, connection: Connection) -> None:
        """Know a connection whose answer has been given while its body, or the request, is still under way."""
        shelf = self._ending.setdefault(connection.key, {})
        shelf[connection] = None
        if self.closed:
            connection.drop()
        elif len(shelf) > self.per_host:
            longest = next(iter(shelf))
            del shelf[longest]
            longest.drop()

    def ended(self, connection: Connection) -> None:
        """That is over."""
        _remove(self._ending, connection)

    def forget(self, connection: Connection) -> None:
        """The connection is closed."""
        _remove(self._idle, connection)
        _remove(self._ending, connection)
        self._open.discard(connection)
        if self._emptied is not None and not self._emptied.done() and not self._leaving():
            self._emptied.set_result(None)

    async def close(self) -> None:
        """Drop every connection that no call waits for, and wait until they are gone; safe twice."""
        self.closed = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for connection in self._leaving():
            connection.drop()
        if self._leaving():
            self._emptied = self._emptied or asyncio.get_running_loop().create_future()
            await asyncio.wait({self._emptied}, timeout=PATIENCE)

    def _leaving(self) -> list[Connection]:
        return [connection for connection in self._open if not connection.is_awaited]

    def _drop_old(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep = None
        now = loop.time()
        oldest = None
        for key, shelf in list(self._idle.items()):
            for connection in list(shelf):
                if now - connection.idle_since < self.idle:
                    oldest = min(oldest or now, connection.idle_since)
                    break
                connection.drop()
                del shelf[connection]
            if not shelf:
                del self._idle[key]
        if oldest is not None:
            self._sweep = loop.call_at(oldest + self.idle, self._drop_old, loop)


def _remove(shelves: dict[str, _Shelf], connection: Connection) -> None:
    shelf = shelves.get(connection.key)
    if shelf is not None:
        shelf.pop(connection, None)
        if not shelf:
            del shelves[connection.key]
