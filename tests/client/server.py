"""A real HTTP server for the client's tests: it records what arrives, and answers, or misbehaves, as it is told."""

import asyncio
import contextlib
import json
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

DEADLINE = 10.0


@dataclass(frozen=True)
class Received:
    """A request that arrived whole."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def line(self) -> str:
        return f"{self.method} {self.target}"


@dataclass(frozen=True)
class Answer:
    """An answer in good order."""

    status: int = 200
    data: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def encoded(self) -> bytes:
        body = json.dumps({"data": self.data, "meta": None}).encode() if self.body is None else self.body
        headers = {"content-type": "application/json", "content-length": str(len(body)), **self.headers}
        lines = [f"HTTP/1.1 {self.status} Said", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def refusal(status: int, code: str = "some_code", message: str = "some message", **headers: str) -> Answer:
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    return Answer(status, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


@dataclass(frozen=True)
class Raw:
    """These bytes, and then the connection is closed; or it hangs until the client leaves."""

    sent: bytes = b""
    hangs: bool = False


@dataclass(frozen=True)
class Drip:
    """These bytes, and then one space after the other until the client leaves."""

    sent: bytes = b""
    every: float = 0.02


DROP = Raw()
HANG = Raw(hangs=True)
Action = Answer | Raw | Drip


class Server:
    """Runs in a thread of its own. `script` is what to do with the next requests; after it, `respond` decides."""

    def __init__(self, respond: Callable[[Received], Action] | None = None, context: ssl.SSLContext | None = None) -> None:
        self.script: deque[Action] = deque()
        self.received: list[Received] = []
        self.begun = 0  # connections on which at least one byte came
        self.connections = 0
        self.reads = True
        self._respond = respond or (lambda _: Answer())
        self._context = context
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{self.port}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._left = threading.Semaphore(0)
        self._never = asyncio.Event()  # kept, since a task that waits for something that nobody has is collected

    def listen(self) -> None:
        """Until now connections are refused."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(DEADLINE)

    def wait_until_left(self) -> None:
        """Until a client has closed a connection."""
        assert self._left.acquire(timeout=DEADLINE)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(DEADLINE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE)
        self._loop.close()
        self._socket.close()

    async def _listen(self) -> None:
        self._socket.setblocking(False)
        self._server = await asyncio.start_server(self._serve, sock=self._socket, ssl=self._context)

    async def _close(self) -> None:
        for _ in range(10):
            # One that is accepted while its server closes, or whose task is cancelled before its first step, stays open.
            await asyncio.sleep(0)
        if hasattr(self, "_server"):
            self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for _ in range(5):
            await asyncio.sleep(0)  # the closed transports' last callbacks

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._talk(reader, writer, self.connections)
        writer.transport.abort()
        self._left.release()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        while True:
            first = await reader.readexactly(1)
            self.begun += 1
            if not self.reads:
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                await self._never.wait()
            head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
            request, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, target, _ = request.split(" ")
            received = Received(method, target, headers, body, connection)
            self.received.append(received)
            match self.script.popleft() if self.script else self._respond(received):
                case Answer() as answer:
                    writer.write(answer.encoded())
                    await writer.drain()
                case Raw(sent, hangs):
                    writer.write(sent)
                    await writer.drain()
                    if hangs:
                        await reader.read()
                    return
                case Drip(sent, every):
                    writer.write(sent)
                    gone = asyncio.ensure_future(reader.read())
                    while not (await asyncio.wait({gone}, timeout=every))[0]:
                        writer.write(b" ")
                    return


@contextlib.contextmanager
def serving(
    respond: Callable[[Received], Action] | None = None, context: ssl.SSLContext | None = None, listens: bool = True
) -> Iterator[Server]:
    server = Server(respond, context)
    try:
        if listens:
            server.listen()
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def black_hole() -> Iterator[str]:
    """The URL of a place that answers no request for a connection: its queue of them is full and nobody accepts."""
    with contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.socket())
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(20):
            caller = stack.enter_context(socket.socket())
            caller.settimeout(0.2)
            try:
                caller.connect(deaf.getsockname())
            except TimeoutError:
                break
        else:
            raise AssertionError("the queue does not fill")
        yield f"http://127.0.0.1:{deaf.getsockname()[1]}"
