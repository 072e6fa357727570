"""One request and its answer on a connection: how the answer is framed, and what becomes of one that fails (F14)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

from treadle.functions.http.envelope import failure

SMALL = 65_536  # bytes; a body that is left unread is read on and thrown away up to this size, else the connection ends
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_OURS = frozenset({b"connection", b"keep-alive", b"transfer-encoding"})  # what the connection itself decides
_RESET = struct.pack("ii", 1, 0)  # no lingering
_dates: dict[int, bytes] = {}
_logger = logging.getLogger("treadle")


class Exchange(RequestResponseCycle):
    """uvicorn's cycle with its own way of sending.

    Against uvicorn's, the head leaves together with the first piece of the body; 304 may tell a length; HTTP/1.0 gets no
    chunks; a connection whose request is not wholly read is closed, so that what is left is not taken for a request;
    an answer that breaks off is cut, so that the caller notices; and waiting for a client to go reads nothing for that.
    """

    def __init__(
        self,
        scope: Scope,
        transport: asyncio.Transport,
        flow: FlowControl,
        on_response: Callable[[], None],
        *,
        unread: int | None = 0,
        keep_alive: bool = True,
        expect_100_continue: bool = False,
    ) -> None:
        """`unread` is how many bytes the body has, None where that is not known."""
        super().__init__(
            scope=scope,  # type: ignore[arg-type]  # Starlette's type of a scope is the wider one
            transport=transport,
            flow=flow,
            logger=_logger,
            access_logger=_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=expect_100_continue,
            keep_alive=keep_alive,
            on_response=on_response,
        )
        self._unread = unread
        self._head = b""  # what is sent with the first piece of the body, or in the loop's next round
        self._left: int | None = None  # bytes that the announced length still wants
        self._bare = False  # an answer that has no body, whatever is sent

    async def receive(self) -> Any:
        """ASGI's `receive`. A client that sends no more has not gone: it may wait for the answer."""
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(_CONTINUE)
            self.waiting_for_100_continue = False
        if not (self.disconnected or self.response_complete):
            if self.more_body:
                self.flow.resume_reading()
            await self.message_event.wait()
            self.message_event.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    @property
    def meaningless(self) -> bytes:
        """What a client passes over at this point of the answer; nothing, where there is no such thing."""
        if self.response_complete or self.scope["http_version"] != "1.1":
            return b""
        if not self.response_started:
            return _CONTINUE
        return b"0" if self.chunked_encoding and not self._head else b""  # in front of the size of the next chunk

    async def run_asgi(self, app: Any) -> None:
        """Run the application, and make up for what it leaves undone."""
        try:
            await app(self.scope, self.receive, self.send)
            if not (self.response_started or self.disconnected):
                _logger.error("the application answered nothing to %s %s", self.scope["method"], self.scope.get("path"))
                await self._send_500()
        except Exception:
            if not self.disconnected:
                _logger.exception("the answer to %s %s failed", self.scope["method"], self.scope.get("path"))
                if not self.response_started:
                    await self._send_500()
        finally:
            if not self.response_complete and not self.disconnected:
                self.cut()
            self.on_response = _nothing  # no circle is left behind

    async def _send_500(self) -> None:
        answer: Any = failure(500, "internal", "the service failed to answer; its log says why")
        self.keep_alive = False
        await answer(self.scope, self.receive, self.send)

    def cut(self) -> None:
        """End the connection in the midst of the answer: what was sent arrives, but does not look whole."""
        self.disconnected = True
        self.message_event.set()
        if self.response_started and not self.chunked_encoding and self._left is None:
            # The end of the connection would be that of the answer: reset it instead.
            with contextlib.suppress(OSError):
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()
        else:
            self._flush()
            self.transport.close()
        self.on_response()

    async def send(self, message: Any) -> None:
        """ASGI's `send`. After the caller has gone, it does nothing."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if self.response_complete:
            raise RuntimeError("the answer is complete, and more of it was sent")
        match message["type"]:
            case "http.response.start" if not self.response_started:
                self._start(message["status"], message.get("headers", ()))
            case "http.response.body" if self.response_started:
                self._body(message.get("body", b""), message.get("more_body", False))
            case other:
                raise RuntimeError(f"{other} was sent out of order")

    def _start(self, status: int, headers: Any) -> None:
        method, version = self.scope["method"], self.scope["http_version"]
        self._bare = method == "HEAD" or status in (204, 304)
        lines = [STATUS_LINE.get(status) or b"HTTP/1.1 %d \r\n" % status]
        dated = False
        for written, value in headers:
            if HEADER_RE.search(written) or HEADER_VALUE_RE.search(value):
                raise RuntimeError(f"the header {written!r} of the answer cannot be sent")
            name = written.lower()
            if name == b"connection":
                self.keep_alive = self.keep_alive and b"close" not in value.lower()
            if name in _OURS:
                continue
            if name == b"content-length":
                if status == 204:
                    continue
                self._left = int(value)
            dated = dated or name == b"date"
            lines += (name, b": ", value, b"\r\n")
        if not dated:
            lines += (b"date: ", _date(), b"\r\n")
        self.chunked_encoding = not self._bare and self._left is None and version == "1.1"
        if self.chunked_encoding:
            lines.append(b"transfer-encoding: chunked\r\n")
        if self.more_body and (self.waiting_for_100_continue or self._unread is None or self._unread > SMALL or status == 408):
            self.keep_alive = False  # else what is left of the body would be waited for, or taken for a request
        if not self._bare and self._left is None and version != "1.1":
            self.keep_alive = False
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        self.response_started = True
        self.waiting_for_100_continue = False
        self._head = b"".join(lines)
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        if self._head and not self.transport.is_closing():
            self.transport.write(self._head)
        self._head = b""

    def _body(self, body: bytes, more: bool) -> None:
        if self._bare:
            body, self._left = b"", None
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the body of the answer has not the length that its content-length says")
        if self.chunked_encoding:
            body = b"%b%b" % (b"%x\r\n%b\r\n" % (len(body), body) if body else b"", b"" if more else b"0\r\n\r\n")
        if self._head and len(body) <= SMALL:
            body, self._head = self._head + body, b""
        self._flush()
        if body:
            self.transport.write(body)
        if not more:
            self.response_complete = True
            self.message_event.set()
            self.on_response()


def _nothing() -> None:
    pass


def _date() -> bytes:
    """Now, in the form of HTTP, made once a second."""
    second = int(asyncio.get_running_loop().time())
    date = _dates.get(second)
    if date is None:
        _dates.clear()
        date = _dates[second] = formatdate(usegmt=True).encode()
    return date
