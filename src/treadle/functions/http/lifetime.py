"""How long a connection of a client may last, and how it ends: what holds it open is always bounded by a time (F14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from treadle.functions.http.room import Room
from treadle.functions.http.taking import Taking, untaken


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a connection. `head`, `ahead` and `thrown_away` are in bytes, `pace` in bytes a second, all else in seconds.

    `head_seconds` is for the head of a request to arrive, `idle` for the next request to begin (more than the minute that
    reverse proxies keep connections, so that they end them and not we), `writing` for a client to take anything of an answer,
    which after that time it must take at `pace` in the long run, and `linger` for it to end a connection that one of us has
    ended: we once all was sent, whereupon it may send so much that is `thrown_away`; or it, while its answer is being made. Of
    requests behind one that is being answered, so much is read `ahead`. `connections` are of the whole server, and fewer where
    the process may have few descriptors.
    """

    head: int = 32_768
    head_seconds: float = 30
    idle: float = 75
    writing: float = 60
    pace: float = 1_000
    linger: float = 5
    thrown_away: int = 67_108_864
    ahead: int = 65_536
    connections: int = 10_000


class State(ServerState):
    """What the connections of one server share. `limits` are theirs, `room` is for them; `empty` is set while there is none."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.room = Room(limits.connections)
        self.empty = asyncio.Event()
        self.empty.set()


class Lifetime(HttpToolsProtocol):
    """The part of a connection that begins it and ends it."""

    def __init__(self, config: Config, state: State) -> None:
        super().__init__(config, state, {})
        self._empty = state.empty
        self._room = state.room
        self._limits = state.limits
        self._deaf = False  # whatever still comes is thrown away
        self._lost = False
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._sent: Callable[[], None] | None = None  # what to do once all that was written is sent

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """A client is there."""
        super().connection_made(transport)
        self._empty.clear()
        self._room.rest(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone, or was left."""
        self._lost = True
        self._wait(0, None)
        self._watch_writing(None)
        super().connection_lost(exc)
        self._room.wake(self)
        self._room.leave()
        if not self.connections:
            self._empty.set()

    def abort(self) -> None:
        """End it now."""
        self.transport.abort()

    def make_way(self) -> None:
        """End it for the sake of another, since it has no request to be answered."""
        self._leave()

    def _wait(self, seconds: float, then: Callable[[], None] | None) -> None:
        """Set the one timer that a connection needs: for a head, for the next request, or for the end."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if then is None else self.loop.call_later(seconds, then)
        self._sent = None

    def _once_sent(self, then: Callable[[], None]) -> None:
        """Do it when all that was written has left this process, however long the client takes to read it; before, no timer."""
        if self.transport.get_write_buffer_size():
            self._wait(0, None)
            self.transport.set_write_buffer_limits(high=0)
            self._sent = then
        else:
            then()

    def _rest(self) -> None:
        """Wait for a request to begin, once the answer is sent."""
        self._once_sent(self._resting)

    def _resting(self) -> None:
        self._room.rest(self)
        self._wait(self._limits.idle, self._leave)

    def _leave(self, *, linger: bool = False) -> None:
        """End it once what was written is sent; `linger` while the client may still be sending and has not read the answer.

        To close a socket with unread data in it resets the connection, and the client would lose the answer.
        """
        self._deaf = True
        self._room.wake(self)
        if self._lost:
            return
        if linger and self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()
            self.flow.resume_reading()
            self._once_sent(self._linger)
        else:
            self._wait(0, None)
            self.transport.set_write_buffer_limits(high=0)  # so that it is watched to the last byte
            self.transport.close()

    def _linger(self) -> None:
        taking = Taking(untaken(self.transport), self.loop.time(), self._limits.writing, self._limits.pace)

        def look() -> None:
            if taking.goes_on(untaken(self.transport), self.loop.time()):
                self._wait(self._limits.linger, look)
            else:
                self.abort()

        self._wait(self._limits.linger, look)

    def pause_writing(self) -> None:
        """The client takes nothing at the moment."""
        super().pause_writing()
        self._watch_writing(Taking(untaken(self.transport), self.loop.time(), self._limits.writing, self._limits.pace))

    def resume_writing(self) -> None:
        """It does again."""
        self._watch_writing(None)
        super().resume_writing()
        if not self.transport.get_write_buffer_size():
            self.transport.set_write_buffer_limits()
            then, self._sent = self._sent, None
            if then is not None:
                then()

    def _watch_writing(self, taking: Taking | None) -> None:
        if self._stall is not None:
            self._stall.cancel()
        self._stall = None if taking is None else self.loop.call_later(self._limits.writing, self._look_at_writing, taking)

    def _look_at_writing(self, taking: Taking) -> None:
        if taking.goes_on(untaken(self.transport), self.loop.time()):
            self._watch_writing(taking)
        else:
            self.abort()
