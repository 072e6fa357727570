"""An alarm: what a loop sleeps on, rung from any thread."""

from __future__ import annotations

import asyncio
import threading


class Alarm:
    """Sleep until rung, or for some seconds. A ring while nobody sleeps is remembered once."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake whoever sleeps, or let the next sleep end at once; from any thread, and harmless when the loop is gone."""
        if threading.get_ident() == self._thread:
            self._event.set()
            return
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            pass  # the loop has closed: nobody sleeps any more

    def ring_here(self) -> None:
        """`ring` for callers in the alarm's own loop, who ring often."""
        self._event.set()

    async def wait(self, seconds: float | None = None) -> None:
        """Sleep until rung, at most for `seconds`."""
        if not self._event.is_set() and seconds is not None:
            # An asyncio.Event and a timer that sets it cost less than a cancelled wait at each wake-up.
            timer = self._loop.call_later(min(seconds, threading.TIMEOUT_MAX), self._event.set)
            try:
                await self._event.wait()
            finally:
                timer.cancel()
        else:
            await self._event.wait()
        self._event.clear()
