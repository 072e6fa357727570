"""The sign that a handler gets to see when it should end early (E12)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator


class Aborted:
    """Set once, at the timeout, at a lost lease or at shutdown; `reason` says which.

    A plain handler asks `is_set()` or blocks in `wait(timeout)`; an async one asks, or awaits it.
    """

    __slots__ = ("_blocked", "_waiters", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self._blocked: list[threading.Event] = []
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def is_set(self) -> bool:
        """Whether the handler should end."""
        return self.reason is not None

    def set(self, reason: str) -> None:
        """Tell the handler to end, from any thread; the first reason stays."""
        if self.reason is not None:
            return
        self.reason = reason
        for event in tuple(self._blocked):
            event.set()
        for loop, waiter in tuple(self._waiters):  # a copy, since a waiter may be leaving in its own thread
            try:
                loop.call_soon_threadsafe(_resolve, waiter)
            except RuntimeError:
                pass  # that loop has closed, and its waiter with it

    def wait(self, timeout: float | None = None) -> bool:
        """Block until set, at most `timeout` seconds; answers whether it is. For plain handlers, in their threads."""
        event = threading.Event()
        self._blocked.append(event)
        try:
            # Looked at after the event is there, so that a set in between is not missed.
            return self.reason is not None or event.wait(timeout) or self.reason is not None
        finally:
            self._blocked.remove(event)

    def __await__(self) -> Generator[object, None, None]:
        loop = asyncio.get_running_loop()
        waiter = (loop, loop.create_future())
        self._waiters.append(waiter)
        try:
            if self.reason is None:
                yield from waiter[1]
        finally:
            self._waiters.remove(waiter)  # or each wait with a time limit would leave one behind


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
