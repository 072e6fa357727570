"""The load on the API: as many requests as go, or so many a second; over connections that stay open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

BODY = b'{"payload":{"order":42,"items":["a","b"]},"delay_secs":%d}'


@dataclass(frozen=True)
class Target:
    """Where requests go."""

    port: int
    key: str
    function: str = "bench"
    delay: int = 0

    @property
    def request(self) -> bytes:
        """One enqueue."""
        body = BODY % self.delay
        return (
            f"POST /v1/functions/{self.function}/jobs HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\napikey: {self.key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        ).encode() + body


class _Connection(asyncio.Protocol):
    """One request after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]  # a stream's transport
        self._buffer = b""
        self._answered: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        size = int(self._buffer[:end].lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(self._buffer) < end + 4 + size:
            return
        assert self._buffer.startswith(b"HTTP/1.1 201"), self._buffer[:200]
        self._buffer = b""
        assert self._answered is not None
        self._answered.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(ConnectionError("the service closed the connection"))

    async def ask(self, request: bytes) -> float:
        """The seconds until the answer was whole."""
        self._answered = asyncio.get_running_loop().create_future()
        begun = time.perf_counter()
        self._transport.write(request)
        await self._answered
        return time.perf_counter() - begun

    def close(self) -> None:
        self._transport.close()


async def _connections(target: Target, count: int) -> list[_Connection]:
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(_Connection, "127.0.0.1", target.port))[1] for _ in range(count)]


async def flood(target: Target, requests: int, callers: int = 32) -> float:
    """Requests a second, from so many callers at once, each one by one."""
    connections = await _connections(target, callers)
    request, left = target.request, requests

    async def caller(connection: _Connection) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await connection.ask(request)

    begun = time.perf_counter()
    await asyncio.gather(*map(caller, connections))
    seconds = time.perf_counter() - begun
    for connection in connections:
        connection.close()
    return requests / seconds


async def paced(target: Target, rate: float, seconds: float, callers: int = 64) -> Sequence[float]:
    """The seconds that each request took, counted from when it was due, so that a late start is no excuse."""
    connections = await _connections(target, callers)
    free: asyncio.Queue[_Connection] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    request, took = target.request, []
    begun = time.perf_counter()

    async def one(due: float) -> None:
        connection = await free.get()
        await connection.ask(request)
        took.append(time.perf_counter() - due)
        free.put_nowait(connection)

    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * seconds)):
            due = begun + number / rate
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            group.create_task(one(due))
    for connection in connections:
        connection.close()
    return took
