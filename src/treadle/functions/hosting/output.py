"""What a function writes to stdout and stderr, passed on to the service's log line by line."""

from __future__ import annotations

import asyncio
import logging

MOST_OF_A_LINE = 2000  # characters that are logged
_MOST_BYTES = 4 * MOST_OF_A_LINE  # a character has at most four
BURST, PER_SECOND = 1000, 100  # lines: so many at once, and so many a second in the long run
# Written out, so that no output can move the cursor of whoever reads the log, or pass for another line.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(9), *range(10, 32), *range(127, 160))} | {
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class Output:
    """Takes the bytes as they come, never waits, and keeps the last line that said something.

    A flood is counted instead of logged, so that it costs the service little: "12,345 lines were left out".
    """

    def __init__(self, logger: logging.Logger) -> None:
        self.last = ""
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._too_long = False
        self._left_out = 0
        self._tokens = float(BURST)
        self._refilled_at = self._loop.time()

    def feed(self, data: bytes) -> None:
        """Take what was read."""
        self._refill()
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if self._tokens < 1:
                end = self._skip(data, start)
            else:
                self._line(data[start:end])
            start = end + 1
        self._keep(data[start:])

    def end(self) -> None:
        """Take the last line, which has no end."""
        if self._rest:
            self._line(b"")
        self._tell()

    def _skip(self, data: bytes, start: int) -> int:
        """Count lines without looking at them, but for the last; answers where that one ends."""
        end = data.rfind(b"\n")
        before = data.rfind(b"\n", start, end) + 1 or start
        self._remember(self._text((self._rest if before == start else b"") + data[before:end]))
        self._rest, self._too_long = b"", False
        if not self._left_out:
            self._loop.call_later(1.0, self._tell)
        self._left_out += data.count(b"\n", start)
        return end

    def _line(self, data: bytes) -> None:
        self._keep(data)
        text = self._text(self._rest, self._too_long)
        self._rest, self._too_long = b"", False
        if text:
            self._tokens -= 1
            self._remember(text)
            self._logger.info("%s", text)

    def _keep(self, data: bytes) -> None:
        room = _MOST_BYTES - len(self._rest)
        self._too_long = self._too_long or len(data) > room
        self._rest += data[:room]

    def _text(self, data: bytes, too_long: bool = False) -> str:
        text = data[:_MOST_BYTES].decode(errors="replace").rstrip()
        shown = text[:MOST_OF_A_LINE].translate(_CONTROLS)
        return f"{shown}..." if too_long or len(text) > MOST_OF_A_LINE else shown

    def _remember(self, text: str) -> None:
        self.last = text or self.last

    def _refill(self) -> None:
        now = self._loop.time()
        self._tokens = min(float(BURST), self._tokens + (now - self._refilled_at) * PER_SECOND)
        self._refilled_at = now

    def _tell(self) -> None:
        if self._left_out:
            self._logger.warning("%s lines of its output were left out: it writes too fast", f"{self._left_out:,}")
            self._left_out = 0
