"""A client's connection: requests are read from it within bounds, and answered in their order (F14)."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import httptools
from uvicorn.config import Config

from treadle.functions.http.envelope import failure
from treadle.functions.http.exchange import Exchange
from treadle.functions.http.head import METHODS, Head, Refusal, invalid, too_large, unreadable
from treadle.functions.http.lifetime import Lifetime, State

_KEPT = 80  # bytes of a head, to tell an unknown method from noise
_PIECE = 2_048  # bytes that are parsed together: a hundred requests at most, where a read may bring ten thousand
_logger = logging.getLogger("treadle")


class Connection(Lifetime):
    """uvicorn's protocol over httptools, with the edges that a service needs which anybody may call.

    A request that is refused before the application sees it gets an answer in the API's envelope, after those before it.
    Against uvicorn's, there are bounds on the size of a head and on the time for one; trailers are dropped; an upgrade that
    is not to be had is passed over, and the body behind it read; pipelined requests notice that their client has gone, and
    most of them stay the bytes that they are until those before them are answered.
    """

    def __init__(self, config: Config, state: State) -> None:
        super().__init__(config, state)
        self._serving: Exchange | None = None
        self._in_head = True  # what comes next is the head of a request, or the rest of one
        self._opening = b""
        self._taken = 0  # bytes since the parser had last something to tell
        self._muted = False  # the parser is told what it knows already
        self._stopping = False
        self._half_closed = False
        self._thrown_away = 0
        self._ahead = b""  # read and not parsed, since there are requests to be answered before
        self._excess = False  # it came when there was no room

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """A client is there."""
        super().connection_made(transport)
        self._excess = self._room.crowded
        self._wait(self._limits.head_seconds, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone, or was left: tell those that are answering it."""
        for exchange in (self._serving, *(queued for queued, _ in self.pipeline)):
            if exchange is not None and not exchange.response_complete:
                exchange.disconnected = True
                exchange.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio reads the answer: whether to leave the other way open
        """The client sends no more. It gets the answers to what it has sent whole."""
        if not self._busy or self._cut_short:
            self._leave()
            return False
        self._half_closed = True
        self._watch_for_reset()
        return True

    @property
    def _cut_short(self) -> bool:
        """Whether it is the request under way that would not be whole if there came no more."""
        return not (self._deaf or self._in_head or self.pipeline or self._ahead)

    def _watch_for_reset(self) -> None:
        """Look after a while whether a client that sends no more has gone for good: its system then resets what we send."""
        self._wait(self._limits.linger, self._provoke_reset)

    def _provoke_reset(self) -> None:
        if self._serving is not None and self._serving.meaningless:
            self.transport.write(self._serving.meaningless)
            self._wait(self._limits.linger, self._abort_if_reset)

    def _abort_if_reset(self) -> None:
        if self.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.abort()  # asyncio does not look any more, as there is nothing to read

    def shutdown(self) -> None:
        """End it after the request under way."""
        self._stopping = True
        if self._serving is not None and self._busy:
            self._serving.keep_alive = False
        else:
            self._leave()

    @property
    def _busy(self) -> bool:
        return self._serving is not None and not self._serving.response_complete

    def _head_is_late(self) -> None:
        if self._opening:
            self._refuse(Refusal(408, "timeout", f"the request's head was not whole within {self._limits.head_seconds:g} s"))
        else:
            self._leave()

    # --- what arrives

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        if self._deaf:
            self._thrown_away += len(data)
            if self._thrown_away > self._limits.thrown_away:
                self.abort()
            return
        self._ahead += data
        self._read_ahead()

    def _read_ahead(self) -> None:
        """Parse what was read, unless there is a request that has to wait."""
        data, self._ahead = self._ahead, b""
        place = 0
        while place < len(data) and not self.pipeline and not self._deaf:
            self._take(data[place : place + _PIECE])
            place += _PIECE
        self._ahead = b"" if self._deaf else data[place:]
        if len(self._ahead) >= self._limits.ahead:
            self.flow.pause_reading()

    def _take(self, data: bytes) -> None:
        self._taken += len(data)
        if self._in_head and len(self._opening) < _KEPT:
            self._opening += data[:_KEPT]
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            if not self._deaf:
                self._misread(error)
        if self._taken > self._limits.head and not self._deaf:
            if self._in_head:
                self._refuse(too_large(self._limits.head))
            else:  # without a byte of body: extensions of a chunk, or trailers
                self._break_off("there is more between the chunks of the request's body than in them")

    def _parse(self, data: bytes) -> None:
        while data and not self._deaf:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                self._pass_over_upgrade()

    def _pass_over_upgrade(self) -> None:
        """Have the body read that httptools leaves to the other protocol: it is a plain request, as nobody upgrades."""
        if not self._deaf:
            framing = [header for header in self.headers if header[0] in (b"content-length", b"transfer-encoding")]
            self.parser = httptools.HttpRequestParser(self)
            self._muted = True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + b"".join(b"%b: %b\r\n" % header for header in framing) + b"\r\n")
            self._muted = False

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        if not self._muted and not self._deaf:
            super().on_message_begin()
            if not self._busy:
                self._wait(self._limits.head_seconds, self._head_is_late)

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        if not self._muted and not self._deaf:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; one behind the body is none."""
        if self._in_head and not self._muted and not self._deaf:
            super().on_header(name, value.strip(b" \t"))  # of which the parser leaves what is behind it

    def on_headers_complete(self) -> None:
        """The head is whole."""
        if self._muted or self._deaf:
            return
        self._in_head = False
        self._taken = 0
        self._opening = b""
        if not self._busy:
            self._wait(0, None)
        head = Head(self.parser.get_method().decode("ascii"), self.url, self.parser.get_http_version(), self.headers)
        refusal = self._no_room() or head.refusal(self._limits.head)
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]  # made in on_message_begin, and completed here
        if refusal is not None:
            scope["method"] = head.method
            self._refuse(refusal)
            return
        scope.update(head.scope)
        exchange = Exchange(
            scope,
            self.transport,
            self.flow,
            self._answered,
            unread=head.body_size,
            keep_alive=head.version == "1.1" and self.parser.should_keep_alive() and not self._stopping,
            expect_100_continue=self.expect_100_continue,
        )
        self._take_on(exchange, self.app)

    def _no_room(self) -> Refusal | None:
        self._excess = self._excess and self._room.crowded
        if not self._excess:
            return None
        return Refusal(
            503, "too_many_connections", f"there are {self._room.most:,} clients, the most that are served; try again"
        )

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._taken = 0
        if not self._deaf:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if not self._deaf and (self._muted or not self.parser.should_upgrade()):
            self._in_head = True
            self._taken = 0
            super().on_message_complete()

    # --- what is answered

    def _take_on(self, exchange: Exchange, app: Any) -> None:
        """Answer the request, after those before it."""
        self.cycle = exchange
        if self._busy:
            self.pipeline.appendleft((exchange, app))
        else:
            self._serve(exchange, app)

    def _serve(self, exchange: Exchange, app: Any) -> None:
        self._serving = exchange
        self._room.wake(self)
        if self._half_closed:
            self._watch_for_reset()
        task = self.loop.create_task(exchange.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _answered(self) -> None:
        """The answer under way is over."""
        exchange = self._serving
        if exchange is None or self._lost:
            return
        if not exchange.keep_alive or self._stopping or self.transport.is_closing():
            self._leave(linger=(exchange.more_body or not self._stopping) and not self._half_closed)
            return
        if self.pipeline:
            following, app = self.pipeline.pop()
            assert isinstance(following, Exchange)  # none else is put there
            self._serve(following, app)
        if not self.pipeline:
            self.flow.resume_reading()
            self._read_ahead()
        if self._half_closed and (self._cut_short or not self._busy):
            self._leave()
        elif self._busy or self._deaf:
            pass
        elif self._in_head and self._opening:
            self._room.rest(self)
            self._wait(self._limits.head_seconds, self._head_is_late)
        else:  # the next request has not begun, or a small body is still to be thrown away
            self._rest()

    def _refuse(self, refusal: Refusal) -> None:
        """Answer so, after the requests before it, and hear no more."""
        self._deaf = True
        self._wait(0, None)
        self._take_on(*self._refused(refusal))

    def _refused(self, refusal: Refusal) -> tuple[Exchange, Any]:
        scope = {"method": "GET", "http_version": "1.1", **(self.scope or {})}
        headers = {405: {"allow": ", ".join(METHODS)}, 503: {"retry-after": "1"}}.get(refusal.status)
        exchange = Exchange(scope, self.transport, self.flow, self._answered, unread=None, keep_alive=False)
        return exchange, failure(refusal.status, refusal.code, refusal.message, headers)

    def _misread(self, error: httptools.HttpParserError) -> None:
        if isinstance(error, httptools.HttpParserCallbackError):
            _logger.error("a request could not be taken on", exc_info=error)
        if not self._in_head:
            self._break_off("the body of the request is malformed")
        elif isinstance(error, httptools.HttpParserInvalidMethodError):
            self._refuse(unreadable(self._opening, str(error).lower()))
        else:
            self._refuse(invalid(f"this is no HTTP request: {str(error).lower() or 'it is malformed'}"))

    def _break_off(self, message: str) -> None:
        """Give up a request whose body cannot be read on, and say so if there is still a way to."""
        self._deaf = True
        broken = self.cycle
        if self.pipeline:  # the last of it, since it is the last that was read
            self.pipeline[0] = self._refused(invalid(message))
        elif broken.response_complete:
            self._leave()
        elif isinstance(broken, Exchange) and broken.response_started:
            broken.cut()
        else:
            broken.disconnected = True
            broken.message_event.set()
            self._serve(*self._refused(invalid(message)))
