"""Job ids: UUIDv7, so that ids sort by creation, within one process strictly (E1)."""

from __future__ import annotations

import os
import random
import threading

_CHANCE = 74  # bits below the 48 of the milliseconds, less version and variant

_random = random.Random(os.urandom(32))  # noqa: S311  seeded from the system's entropy; ids must not collide, and are no secrets
_lock = threading.Lock()
_last = 0


def new_id(unix_ms: int) -> str:
    """A new UUIDv7 for that Unix time in milliseconds, greater than every id this process made before.

    A clock that stands still or goes back cannot break the order: the id then goes on from the last one.
    """
    global _last
    with _lock:
        value = (unix_ms << _CHANCE) | _random.getrandbits(_CHANCE - 1)
        if value <= _last:
            value = _last + 1 + _random.getrandbits(40)
        _last = value
    # 48 bits of time, 4 of version, 12 of chance, 2 of variant, 62 of chance
    number = (value >> 74) << 80 | 0x7 << 76 | (value >> 62 & 0xFFF) << 64 | 0x2 << 62 | value & 0x3FFFFFFFFFFFFFFF
    text = "%032x" % number  # noqa: UP031  twice as quick as an f-string here, and ids are made on the hot path
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _after_fork() -> None:
    """A child of a fork must not repeat its parent's ids, nor wait for a lock that no thread of it holds."""
    global _lock
    _lock = threading.Lock()
    _random.seed(os.urandom(32))


os.register_at_fork(after_in_child=_after_fork)
