"""What the tests of the HTTP edges share: the server around an endpoint, a client that sends any bytes, a raw function."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from treadle.functions.http.failures import answer_to
from treadle.functions.http.lifetime import Limits
from treadle.functions.http.server import Server

T = TypeVar("T")
DEADLINE = 20.0
HOST = b"host: here\r\n"


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a test, which must be over before the deadline."""

    async def bounded() -> T:
        async with asyncio.timeout(DEADLINE):
            return await main

    return asyncio.run(bounded())


def endpoint(answer: Callable[[Request], Awaitable[Response]]) -> Any:
    """An application that is one endpoint, as the API runs it."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive, send)
        try:
            response = await answer(request)
        except Exception as error:
            response = answer_to(error)
        await response(scope, receive, send)

    return app


@contextlib.asynccontextmanager
async def serving(app: Any, **limits: float) -> AsyncIterator[Server]:
    """The server around the application, on a free port."""
    server = Server(app, port=0, limits=Limits(**limits))
    await server.start()
    try:
        yield server
    finally:
        await server.stop(5)


@dataclass
class Answer:
    """An answer as it came."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def error(self) -> tuple[str, str]:
        """The code and the message of a failure; checks that the envelope has nothing else."""
        found = json.loads(self.body)
        assert set(found) == {"error"} and set(found["error"]) == {"code", "message"}
        assert self.header("content-type") == "application/json"
        assert "\n" not in found["error"]["message"]
        return found["error"]["code"], found["error"]["message"]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


class Client:
    """A connection that sends bytes, and reads answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> tuple[int, list[tuple[str, str]]]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        headers = [(name.lower(), value) for name, value in (line.split(": ", 1) for line in lines)]
        return int(first.split(" ")[1]), headers

    async def answer(self, *, bare: bool = False) -> Answer:
        """The next answer; `bare` for that to HEAD."""
        status, headers = await self.head()
        answer = Answer(status, headers, b"")
        length = answer.header("content-length")
        if bare or status in (204, 304) or 100 <= status < 200:
            pass
        elif answer.header("transfer-encoding") == "chunked":
            answer.body = b"".join([piece async for piece in self.chunks()])
        elif length is not None:
            answer.body = await self.reader.readexactly(int(length))
        else:
            answer.body = await self.reader.read()
        return answer

    async def chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self.reader.readline(), 16):
            piece = await self.reader.readexactly(size + 2)
            assert piece.endswith(b"\r\n")
            yield piece[:-2]
        assert await self.reader.readline() == b"\r\n"

    async def ask(self, data: bytes) -> Answer:
        await self.send(data)
        return await self.answer(bare=data.startswith(b"HEAD "))

    async def ended(self) -> bytes:
        """What still comes until the other side ends the connection, by whichever means."""
        rest = b""
        with contextlib.suppress(ConnectionError):
            while piece := await self.reader.read(65536):
                rest += piece
        return rest


@contextlib.asynccontextmanager
async def client(port: int) -> AsyncIterator[Client]:
    """A connection to the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@dataclass
class Call:
    """A request as a function got it, and the connection to answer on."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key == name]
        assert len(found) <= 1
        return found[0] if found else None

    async def body(self) -> bytes:
        if self.header("transfer-encoding") == "chunked":
            return b"".join([piece async for piece in Client(self.reader, self.writer).chunks()])
        return await self.reader.readexactly(int(self.header("content-length") or 0))

    async def answer(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


@dataclass
class Function:
    """A raw server. `calls` are the requests it got; a connection is good for one."""

    calls: list[Call]
    url: str


@contextlib.asynccontextmanager
async def function(behave: Callable[[Call], Awaitable[None]]) -> AsyncIterator[Function]:
    """A function that does with each call what `behave` says, and then closes the connection."""
    made = Function([], "")
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")[:-4].split("\r\n")
            method, target, _ = first.split(" ")
            headers = [(name.lower(), value) for name, value in (line.split(": ", 1) for line in lines)]
            call = Call(method, target, headers, reader, writer)
            made.calls.append(call)
            await behave(call)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=1 << 20)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
