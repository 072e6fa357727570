"""NOTIFY outside the hot path: at once where it has been quiet, else once for all that happened in some milliseconds (S6)."""

from __future__ import annotations

import asyncio
import contextlib

from treadle.core.errors import TreadleError
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.pool import Pool

PAUSE = 0.01


class Notifier:
    """Sends the NOTIFYs of one event loop, each as a statement of its own.

    NOTIFY takes a lock of the whole cluster until its transaction ends, so a thousand enqueues a second must not
    bring one each.
    """

    def __init__(self, pool: Pool, channel: str) -> None:
        self._pool = pool
        self._channel = channel
        self._wanted = False
        self._task: asyncio.Task[None] | None = None

    def tell(self) -> None:
        """Have the listeners told of what was just committed."""
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="treadle-notify")

    async def flush(self) -> None:
        """Send what is wanted and not sent yet, and stop."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._wanted:
            await self._send()

    async def _run(self) -> None:
        while self._wanted:
            await self._send()
            await asyncio.sleep(PAUSE)

    async def _send(self) -> None:
        try:
            # A wake-up is a hint: where it cannot be sent, polling finds the jobs.
            with contextlib.suppress(TreadleError, psycopg.Error):
                async with self._pool.session() as session:
                    self._wanted = False
                    await session.fetch("notify", self._channel)
        except asyncio.CancelledError:
            self._wanted = True
            raise
        self._wanted = self._wanted and not self._pool.closed
