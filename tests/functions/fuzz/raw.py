"""HTTP as bytes: what no client library would send, and a strict reading of what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PATIENCE = 15.0


@dataclass(frozen=True)
class Answer:
    """An answer, read by the letter of HTTP/1.1."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        assert set(self.json) == {"data", "meta"} and self.json["meta"] is None, self
        return self.json["data"]

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])

    @property
    def message(self) -> str:
        return str(self.json["error"]["message"])


def request(
    method: str | bytes, target: str | bytes, body: bytes | None = None, *headers: tuple[str, str | bytes], close: bool = True
) -> bytes:
    """A request; `close` asks for the end of the connection after the answer."""
    lines = [_bytes(method) + b" " + _bytes(target) + b" HTTP/1.1", b"host: here"]
    lines += [_bytes(name) + b": " + _bytes(value) for name, value in headers]
    if body is not None and not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in headers):
        lines.append(b"content-length: %d" % len(body))
    if close:
        lines.append(b"connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _bytes(text: str | bytes) -> bytes:
    return text.encode("latin-1") if isinstance(text, str) else text


def answers(data: bytes, methods: Sequence[str] = ()) -> list[Answer]:
    """All answers in the bytes; each must be whole. `methods` are those of the requests, so that HEAD has no body."""
    found: list[Answer] = []
    while data:
        head, separator, data = data.partition(b"\r\n\r\n")
        assert separator, f"a head is not whole: {head[:200]!r}"
        first, *lines = head.decode("ascii").split("\r\n")
        version, status, *_ = first.split(" ", 2)
        assert version == "HTTP/1.1" and len(status) == 3, first
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(": ")
            assert name == name.lower() and name not in headers and value.isprintable(), line
            headers[name] = value
        if status == "100":
            continue
        method = methods[len(found)] if len(found) < len(methods) else ""
        assert "content-length" in headers, head  # all that the service says itself has a length
        length = 0 if method == "HEAD" else int(headers["content-length"])
        assert len(data) >= length, f"a body is not whole: {data[:200]!r}"
        found.append(Answer(int(status), headers, data[:length]))
        data = data[length:]
    return found


class Line:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Send, whether the other end still listens or not."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError:
            pass

    async def rest(self) -> bytes:
        """Everything until the other end closes; it must do so in time. A reset is an end too."""
        pieces = []
        try:
            async with asyncio.timeout(PATIENCE):
                while piece := await self.reader.read(65_536):
                    pieces.append(piece)
        except ConnectionError:
            pass
        return b"".join(pieces)

    async def close(self, *, abort: bool = False) -> None:
        if abort:
            self.writer.transport.abort()
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass


async def connect(port: int) -> Line:
    return Line(*await asyncio.open_connection("127.0.0.1", port))


async def exchange(port: int, data: bytes, methods: Sequence[str] = (), *, eof: bool = False) -> list[Answer]:
    """Send bytes over a connection of their own, `eof` with the end of them, and read all answers until it is closed."""
    line = await connect(port)
    try:
        await line.send(data)
        if eof and line.writer.can_write_eof():
            line.writer.write_eof()
        return answers(await line.rest(), methods)
    finally:
        await line.close()
