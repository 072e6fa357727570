"""The sign that a handler gets to see when it should end early (E12)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator


class Aborted:
    """Set once, at the timeout, at a lost lease or at shutdown; `reason` says which.

    A plain handler asks `is_set()` or blocks in `wait(timeout)`; an async one asks, or awaits it.
    """

    __slots__ = ("_thread_event", "_waiters", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self._thread_event: threading.Event | None = None
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] | None = None

    def is_set(self) -> bool:
        """Whether the handler should end."""
        return self.reason is not None

    def set(self, reason: str) -> None:
        """Tell the handler to end, from any thread; the first reason stays."""
        if self.reason is not None:
            return
        self.reason = reason
        if self._thread_event is not None:
            self._thread_event.set()
        for loop, waiter in self._waiters or ():
            try:
                loop.call_soon_threadsafe(_resolve, waiter)
            except RuntimeError:
                pass  # that loop has closed, and its waiter with it

    def wait(self, timeout: float | None = None) -> bool:
        """Block until set, at most `timeout` seconds; answers whether it is. For plain handlers, in their threads."""
        if self._thread_event is None:
            self._thread_event = threading.Event()
        if self.reason is not None:  # after the event exists, so that a set in between is not missed
            return True
        return self._thread_event.wait(timeout)

    def __await__(self) -> Generator[object, None, None]:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        if self._waiters is None:
            self._waiters = []
        self._waiters.append((loop, waiter))
        if self.reason is None:
            yield from waiter


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
