"""A function on a raw socket, which answers whatever bytes a test wants, when it wants."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from treadle.functions.caller import Answer, Caller

T = TypeVar("T")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
PATIENCE = 20.0


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a test's program, at most for a while, and let nothing go wrong behind its back."""

    async def bounded() -> T:
        behind: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: behind.append(context))
        async with asyncio.timeout(PATIENCE):
            result = await main
        assert not behind, behind
        return result

    return asyncio.run(bounded())


async def pause(seconds: float) -> None:
    """What a slow function does."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, over.set_result, None)
    await over


class Line:
    """One connection, as the function sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        self.ended = asyncio.Event()  # the caller has closed it, one way or the other

    async def head(self) -> bytes:
        """The next request's head."""
        return await self.reader.readuntil(b"\r\n\r\n")

    async def request(self) -> bytes:
        """The next request, whole."""
        head = await self.head()
        for line in head.split(b"\r\n"):
            if line.startswith(b"content-length: "):
                return head + await self.reader.readexactly(int(line[16:]))
        return head

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def end(self) -> bytes:
        """What the caller still sends until it closes the connection."""
        left = b""
        with contextlib.suppress(ConnectionError):
            left = await self.reader.read()
        self.ended.set()
        return left

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Close with a reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Behaviour = Callable[[Line], Awaitable[None]]


class Callee:
    """A listening function, with the connections that it was given and the requests that it read by `answering`."""

    def __init__(self, behaviour: Behaviour, tls: ssl.SSLContext | None, host: str) -> None:
        self.behaviour = behaviour
        self.tls = tls
        self.host = host
        self.lines: list[Line] = []
        self.requests: list[bytes] = []
        self.tasks: set[asyncio.Task[Any]] = set()
        self.port = 0
        self.came = asyncio.Condition()

    @property
    def url(self) -> str:
        bracketed = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{bracketed}:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        line = Line(reader, writer, len(self.lines))
        self.lines.append(line)
        async with self.came:
            self.came.notify_all()
        try:
            await self.behaviour(line)
            await line.end()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            line.ended.set()
        finally:
            writer.transport.abort()
            self.tasks.discard(task)

    async def has(self, count: int) -> None:
        """Wait until so many connections have come."""
        async with self.came:
            await self.came.wait_for(lambda: len(self.lines) >= count)


@contextlib.asynccontextmanager
async def callee(
    behaviour: Behaviour | None = None, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", answer: bytes = OK
) -> AsyncIterator[Callee]:
    """A function that behaves so, or that gives this answer to every request."""
    it = Callee(behaviour or answering(answer), tls, host)
    server = await asyncio.start_server(it.serve, host, 0, ssl=tls)
    it.port = server.sockets[0].getsockname()[1]
    if behaviour is None:
        it.behaviour = answering(answer, it.requests)
    try:
        yield it
    finally:
        for _ in range(5):
            await pause(0)  # for connections that are about to be accepted, which asyncio would leave open after this:
        server.close()
        tasks = list(it.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for line in it.lines:
            line.writer.transport.abort()
        await pause(0)


def answering(answer: bytes, requests: list[bytes] | None = None) -> Behaviour:
    """Give this answer to every request, for as long as the caller likes."""

    async def behaviour(line: Line) -> None:
        while True:
            request = await line.request()
            if requests is not None:
                requests.append(request)
            await line.send(answer)

    return behaviour


def once(answer: bytes) -> Behaviour:
    """Read a request, answer, and close."""

    async def behaviour(line: Line) -> None:
        await line.request()
        await line.send(answer)
        line.close()

    return behaviour


@contextlib.asynccontextmanager
async def calling(**settings: Any) -> AsyncIterator[Caller]:
    """A caller that is closed in the end, and that by itself closes no idle connection."""
    caller = Caller(**{"idle": 1000.0, **settings})
    try:
        yield caller
    finally:
        await caller.close()


JOB = "0190f3c2-7a10-7000-8000-0123456789ab"


async def call(
    caller: Caller,
    url: str,
    *,
    name: str = "x",
    method: str = "JOB",
    path: str = f"/jobs/{JOB}",
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),),
    body: bytes = b"null",
    seconds: float = 10.0,
) -> Answer:
    return await caller.call(name, url, method=method, path=path, headers=headers, body=body, seconds=seconds)
