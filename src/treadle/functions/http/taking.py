"""Whether a client takes what it is answered, judged by what is left of it (F14)."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios

_NONE = bytes(4)


def untaken(transport: asyncio.Transport) -> int:
    """Bytes that were written to the connection and have not arrived, as far as this system tells.

    Not only those of the transport: the system takes megabytes at once, and room for more is seen late by a slow client.
    """
    size = transport.get_write_buffer_size()
    try:
        answer = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, _NONE)
        size += max(0, struct.unpack("i", answer)[0])
    except (OSError, ValueError):  # the connection is over, or the system does not tell
        pass
    return size


class Taking:
    """A client at its reading: it must go on, and must not be slower than `pace` bytes a second in the long run."""

    def __init__(self, left: int, now: float, grace: float, pace: float) -> None:
        """`left` bytes are untaken `now`; the pace counts from `grace` seconds later on."""
        self._first = self._left = left
        self._from = now + grace
        self._pace = pace

    def goes_on(self, left: int, now: float) -> bool:
        """Whether it has taken something since it was looked at before, and enough since the first time."""
        before, self._left = self._left, left
        return left < before and self._first - left >= (now - self._from) * self._pace
