"""A connection: sends one request after the other, and says of each what became of it."""

from __future__ import annotations

import asyncio
import os
import select
import ssl
from asyncio.trsock import TransportSocket
from typing import cast

from treadle.functions.caller.answer import Reading
from treadle.functions.caller.failures import Unanswered, tls_words
from treadle.functions.caller.place import Place
from treadle.functions.caller.pool import Pool
from treadle.functions.shortage import lacking

Outcome = int | Unanswered
REQUEST_TIMEOUT = 408
PIECE = 65_536  # of a body: what asyncio buffers before it asks for a pause


class Connection(asyncio.Protocol):
    """One connection to a place, opened for its first request.

    The outcome of a request is known as soon as its answer's headers are whole. The rest, of the request as of the answer,
    goes on by itself: until both have ended, or the deadline, or the limit of the body.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: Pool, place: Place, body_limit: int) -> None:
        self.loop = loop
        self.key = place.key
        self.idle_since = 0.0
        self._pool = pool
        self._tls = place.tls
        self._body_limit = body_limit
        self._transport: asyncio.Transport | None = None
        self._reading = Reading()
        self._waiter: asyncio.Future[Outcome] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._head = b""
        self._rest: memoryview | None = None  # of the body, still to be sent
        self._deadline = 0.0
        self._paused = False
        self._busy = False
        self._reused = False
        self._body_from = 0
        self._poll: select.poll | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether a call waits for its outcome."""
        return self._waiter is not None

    def is_quiet(self) -> bool:
        """Whether the peer has neither closed the idle connection nor sent anything, also since the loop last looked.

        Bytes that came before the request would be taken for its answer.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not self._poll.poll(0)

    def ask(self, head: bytes, body: bytes, deadline: float) -> asyncio.Future[Outcome]:
        """Send a request, now or as soon as the connection is open. The future is given its outcome, and no exception."""
        self._waiter = waiter = self.loop.create_future()
        self._busy = True
        self._deadline = deadline
        if len(body) <= PIECE:
            self._head = head + body
        else:
            self._head = head
            self._rest = memoryview(body)
        self._reading.expect()
        if self._transport is not None:
            self._send(self._transport)
        return waiter

    def abandon(self, waiter: asyncio.Future[Outcome]) -> None:
        """Close the connection at once if it still serves this request: the connection may be another call's by now."""
        if self._waiter is waiter:
            self._waiter = None
            self.drop()

    def drop(self) -> None:
        """Close the connection without ceremony; safe twice, and before it is open."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request that the connection was opened for."""
        self._transport = cast("asyncio.Transport", transport)
        if self._waiter is None:  # the call was cancelled meanwhile; uvloop tells of the connection all the same
            self.drop()
            return
        self._pool.add(self)
        self._send(self._transport)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if not self._busy:
            self.drop()  # nobody asked for it
            return
        reading = self._reading
        reading.feed(data)
        if reading.status is None:
            if reading.fault is not None:
                self._settle(Unanswered(reading.fault))
                self.drop()
            return
        if reading.spoiled:
            self._settle(self._answered(reading.status))
            self.drop()
        elif reading.complete:
            self._settle(self._answered(reading.status))
            self._complete()
        elif self._waiter is not None:
            self._settle(self._answered(reading.status))
            self._body_from = reading.size
            self._pool.end(self)
        elif reading.size - self._body_from > self._body_limit:
            self.drop()

    def pause_writing(self) -> None:
        """The peer reads more slowly than the body comes."""
        self._paused = True

    def resume_writing(self) -> None:
        """The peer has read on."""
        self._paused = False
        self.loop.call_soon(self._go_on)  # asyncio is in the midst of writing, and loses count of a connection that ends now

    def eof_received(self) -> None:
        """The peer sends no more; asyncio closes the connection after this, but would first send what it still holds."""
        if self._waiter is not None:
            self._settle(self._loss(None))
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by either side."""
        if exc is not None and self._waiter is not None and not self._tls:
            self._read_last_words()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._settle(self._loss(exc))
        self._pool.forget(self)
        self._reading.end()
        self._transport = None

    # The steps.

    def _send(self, transport: asyncio.Transport) -> None:
        self._timer = self.loop.call_at(self._deadline, self._out_of_time)
        transport.write(self._head)
        self._head = b""
        if self._rest is not None:
            self._pump(transport)

    def _pump(self, transport: asyncio.Transport) -> None:
        while self._rest is not None and not self._paused and not transport.is_closing():
            piece, rest = self._rest[:PIECE], self._rest[PIECE:]
            self._rest = rest or None
            transport.write(piece)

    def _go_on(self) -> None:
        if self._transport is not None and self._busy:
            self._pump(self._transport)
            if self._reading.complete:
                self._close_when_sent(self._transport)

    def _is_sending(self) -> bool:
        return self._rest is not None or (self._transport is not None and self._transport.get_write_buffer_size() > 0)

    def _complete(self) -> None:
        """The whole answer is there."""
        if self._transport is not None and self._is_sending():
            self._pool.end(self)
            self._close_when_sent(self._transport)
            return
        self._pool.ended(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._reading.keep_alive:
            self.drop()
            return
        self._busy = False
        self._reused = True
        self.idle_since = self.loop.time()
        self._pool.keep(self)

    def _close_when_sent(self, transport: asyncio.Transport) -> None:
        """Send the request to its end, since a function may answer first and read then. Not all do: it is the last one here."""
        if self._rest is None:
            transport.close()

    def _answered(self, status: int) -> Outcome:
        if status == REQUEST_TIMEOUT and self._reused and not self._reading.keep_alive:
            # How some servers close an idle connection: it crossed the request, and answers none.
            return Unanswered("closed an idle connection", unseen=True)
        return status

    def _settle(self, outcome: Outcome) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(outcome)

    def _out_of_time(self) -> None:
        self._timer = None
        if self._is_sending() and not self._reading.size:
            doing = "while its request was being sent"
        elif not self._reading.size:
            doing = "waiting for its answer"
        else:
            doing = "in the middle of its answer's headers"
        self._settle(Unanswered(doing, timed_out=True))
        self.drop()

    def _loss(self, exc: Exception | None) -> Unanswered:
        if exc is not None and not self._tls and (what := lacking(exc)) is not None:
            return Unanswered("was not heard", lacking=what)
        match exc:
            case ssl.SSLError():
                did = f"broke TLS off ({tls_words(exc)})"
            case None:
                did = "closed the connection"
            case _:
                did = "reset the connection"
        if self._reading.size:
            return Unanswered(f"{did} in the middle of its answer's headers")
        return Unanswered(f"{did} without an answer", unseen=True)

    def _read_last_words(self) -> None:
        """Read what came before the reset that a write has met: an answer to a request which the peer did not read to its end.

        asyncio closes the socket after this, and does not read it again once a write has failed.
        """
        sock = None if self._transport is None else self._transport.get_extra_info("socket")
        if isinstance(sock, TransportSocket):  # of other loops it is not known whether the number is still this socket's
            try:
                while self._waiter is not None and (data := os.read(sock.fileno(), PIECE)):
                    self.data_received(data)
            except OSError:
                pass
