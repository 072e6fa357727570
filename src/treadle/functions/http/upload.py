"""The body of a request on its way to a function, and the watch for a caller who goes (F3)."""

from __future__ import annotations

import asyncio

from starlette.types import Receive


class Upload:
    """The body piece by piece, each taken from the caller when the function has taken the one before."""

    def __init__(self, receive: Receive, size: int | None) -> None:
        """`size` is its length in bytes, None where only its chunks say so."""
        self.size = size
        self.broken_off = False
        self.waiting = False  # for the caller to send more
        self._receive = receive
        self._over = asyncio.Event()
        if size == 0:
            self._over.set()

    def __aiter__(self) -> Upload:
        return self

    async def __anext__(self) -> bytes:
        try:
            while not self._over.is_set():
                self.waiting = True
                message = await self._receive()
                self.waiting = False
                if message["type"] == "http.disconnect":
                    self.broken_off = True
                    self._over.set()
                    raise ConnectionError("the caller has gone")
                if not message.get("more_body", False):
                    self._over.set()
                piece: bytes = message.get("body", b"")
                if piece:
                    return piece
        except asyncio.CancelledError:
            self._over.set()  # the function wants no more of it
            raise
        raise StopAsyncIteration

    async def gone(self) -> None:
        """Return when the caller has gone, or its answer is complete. What else it sends is thrown away."""
        await self._over.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
