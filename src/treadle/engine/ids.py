"""Job ids: UUIDv7, so that ids sort by creation, within one process strictly (E1)."""

from __future__ import annotations

import os
import threading

_lock = threading.Lock()
_last = 0
_FIELDS = 74  # bits below the milliseconds that are not version or variant
_STEP = 1 << 40  # each id of one millisecond goes on by a random step of up to this


def new_id(unix_ms: int) -> str:
    """A new UUIDv7 for that Unix time in milliseconds, greater than every id this process made before.

    A clock that stands still or goes back cannot break the order: the id then goes on from the last one.
    """
    global _last
    random = int.from_bytes(os.urandom(10), "big")
    with _lock:
        # 48 bits of time and 74 of chance as one number; version and variant are put between them below.
        value = (unix_ms << _FIELDS) | (random & ((1 << 73) - 1))
        if value <= _last:
            value = _last + 1 + (random & (_STEP - 1))
        _last = value
    high = value >> 62
    number = (high >> 12) << 80 | 0x7 << 76 | (high & 0xFFF) << 64 | 0x2 << 62 | (value & ((1 << 62) - 1))
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _after_fork() -> None:
    """A child of a fork must not wait for a lock that no thread of it holds."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
