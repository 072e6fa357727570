"""The function that is called: a bare HTTP server that answers at once and counts. It prints its port, then what it saw."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import ClassVar

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Callee(asyncio.Protocol):
    """Answers each request; a payload here is short enough to arrive with its head."""

    seen: ClassVar[set[bytes]] = set()
    calls = 0
    first = last = 0.0
    expected = 0
    over: asyncio.Event

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]  # a stream's transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]) if b"ontent-" in head else 0
            if len(self._buffer) < end + 4 + size:
                return
            self._buffer = self._buffer[end + 4 + size :]
            self._transport.write(ANSWER)
            self._count(head.split(b" ", 2)[1])

    @classmethod
    def _count(cls, path: bytes) -> None:
        cls.last = time.time()
        cls.first = cls.first or cls.last
        cls.calls += 1
        cls.seen.add(path)
        if len(cls.seen) >= cls.expected:
            cls.over.set()


async def main(expected: int) -> None:
    Callee.expected, Callee.over = expected, asyncio.Event()
    server = await asyncio.get_running_loop().create_server(Callee, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await Callee.over.wait()
    print(json.dumps({"calls": Callee.calls, "seconds": Callee.last - Callee.first}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
