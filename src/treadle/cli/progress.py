"""Progress of long work: one line on standard error that is gone at the end, and only on a terminal (L8)."""

from __future__ import annotations

import asyncio
import sys
import time
from types import TracebackType
from typing import Self, TextIO

AFTER, EVERY = 0.5, 0.2  # seconds: work that is quicker shows nothing, and the line changes no faster than it can be read


class Progress:
    """Shows what is done, how much of it, and for how long, while the block runs.

    `update` may be called as often as one likes; it does no I/O.
    """

    def __init__(self, doing: str, unit: str = "jobs", *, stream: TextIO | None = None, wanted: bool = True) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.wanted = wanted and self._stream is not None and self._stream.isatty()
        self._doing, self._unit = doing, unit
        self._count: int | None = None
        self.total: int | None = None
        self._task: asyncio.Task[None] | None = None
        self._began = time.monotonic()

    def turn_to(self, doing: str, total: int | None = None) -> None:
        """Take note that something else is being done now."""
        self._doing, self.total = doing, total

    def update(self, count: int) -> None:
        """Take note of how many are done so far."""
        self._count = count

    async def __aenter__(self) -> Self:
        if self.wanted:
            self._task = asyncio.create_task(self._show())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _show(self) -> None:
        await asyncio.sleep(AFTER)
        try:
            while True:
                self._write(f"\r\033[K{self.text()}")
                await asyncio.sleep(EVERY)
        finally:
            self._write("\r\033[K")

    def text(self) -> str:
        """The line as it is now."""
        of = "" if self.total is None else f" of {self.total:,}"
        count = "" if self._count is None else f" {self._count:,}{of} {self._unit},"
        return f"{self._doing}:{count} {time.monotonic() - self._began:.0f} s"

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass  # progress that cannot be shown is no reason to stop the work
