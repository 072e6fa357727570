"""How long a connection of a client may last, and how it ends: what holds it open is always bounded by a time (F14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a connection. `head` is in bytes, all else in seconds.

    `head_seconds` is for the head of a request to arrive, `idle` for the next request to begin (more than the minute that
    reverse proxies keep connections, so that they end them and not we), `writing` for a client to take anything of an answer,
    and `linger` for it to read one that came before its request was whole; it may send so much meanwhile, in bytes, that is
    `thrown_away`.
    """

    head: int = 32_768
    head_seconds: float = 30
    idle: float = 75
    writing: float = 60
    linger: float = 5
    thrown_away: int = 67_108_864


class State(ServerState):
    """What the connections of one server share. `limits` are theirs; `empty` is set while there is none."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.empty = asyncio.Event()
        self.empty.set()


class Lifetime(HttpToolsProtocol):
    """The part of a connection that begins it and ends it."""

    def __init__(self, config: Config, state: State) -> None:
        super().__init__(config, state, {})
        self._empty = state.empty
        self._limits = state.limits
        self._deaf = False  # whatever still comes is thrown away
        self._lost = False
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """A client is there."""
        super().connection_made(transport)
        self._empty.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone, or was left."""
        self._lost = True
        self._wait(0, None)
        self._watch_writing(None)
        super().connection_lost(exc)
        if not self.connections:
            self._empty.set()

    def abort(self) -> None:
        """End it now."""
        self.transport.abort()

    def _wait(self, seconds: float, then: Callable[[], None] | None) -> None:
        """Set the one timer that a connection needs: for a head, for the next request, or for the end."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if then is None else self.loop.call_later(seconds, then)

    def _leave(self, *, linger: bool = False) -> None:
        """End it once what was written is sent; `linger` while the client may still be sending and has not read the answer.

        To close a socket with unread data in it resets the connection, and the client would lose the answer.
        """
        self._deaf = True
        if self._lost:
            return
        if linger and self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()
            self.flow.resume_reading()
            self._wait(self._limits.linger, self.abort)
        else:
            self.transport.close()
            self._wait(self._limits.writing, self.abort)

    def pause_writing(self) -> None:
        """The client takes nothing at the moment."""
        super().pause_writing()
        self._watch_writing(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It does again."""
        self._watch_writing(None)
        super().resume_writing()

    def _watch_writing(self, size: int | None) -> None:
        if self._stall is not None:
            self._stall.cancel()
        self._stall = None if size is None else self.loop.call_later(self._limits.writing, self._look_at_writing, size)

    def _look_at_writing(self, before: int) -> None:
        size = self.transport.get_write_buffer_size()
        if size < before:
            self._watch_writing(size)
        else:
            self.abort()
