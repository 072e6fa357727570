"""Ids: of jobs, UUIDv7, so that they sort by creation, within one process strictly (E1); and of workers."""

from __future__ import annotations

import os
import random
import socket
import threading

_CHANCE = 74  # bits below the 48 of the milliseconds, less version and variant
_TAIL = (1 << 62) - 1  # the last of them, behind the variant

_random = random.Random(os.urandom(32))  # noqa: S311  seeded from the system's entropy; ids must not collide, and are no secrets
_lock = threading.Lock()
_last = 0


def new_id(unix_ms: int) -> str:
    """A new UUIDv7 for that Unix time in milliseconds, greater than every id this process made before.

    A clock that stands still or goes back cannot break the order: the id then goes on from the last one.
    """
    return new_ids(unix_ms, 1)[0]


def new_ids(unix_ms: int, count: int) -> list[str]:
    """As many ids in ascending order. They share their beginning and count up from a random place, which is what is quick."""
    global _last
    with _lock:
        first = (unix_ms << _CHANCE) | _random.getrandbits(_CHANCE - 1)
        if first <= _last:
            first = _last + 1 + _random.getrandbits(40)
        step = 1 + _random.getrandbits(32)
        if (first & _TAIL) + count * step > _TAIL:
            first = (first | _TAIL) + 1  # the tail begins anew at 0, so that counting does not run out of it
        _last = first + count * step
    # 48 bits of time, 4 of version, 12 of chance, 2 of variant, 62 of chance
    time, chance = first >> _CHANCE, first >> 62 & 0xFFF
    head = f"{time >> 16:08x}-{time & 0xFFFF:04x}-7{chance:03x}-"
    start = 0x2 << 62 | first & _TAIL
    tails = ["%016x" % number for number in range(start, start + count * step, step)]  # noqa: UP031  quicker than an f-string
    return [f"{head}{tail[:4]}-{tail[4:]}" for tail in tails]


def _after_fork() -> None:
    """A child of a fork must not repeat its parent's ids, nor wait for a lock that no thread of it holds."""
    global _lock
    _lock = threading.Lock()
    _random.seed(os.urandom(32))


os.register_at_fork(after_in_child=_after_fork)


def new_worker_id() -> str:
    """An id for a worker: host, process, and chance."""
    return f"{socket.gethostname()[:100]}:{os.getpid()}:{os.urandom(3).hex()}"
