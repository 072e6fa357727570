"""The file descriptors of this process: how many it may have, and how many of them are for clients (F14)."""

from __future__ import annotations

import contextlib
import resource

MOST = 65_536  # more is of no use here, and programs that close all they could have at their start take long over millions
_KEPT = 64  # at least so many are for the store, the functions' processes and all else


def raise_limit() -> None:
    """Let the process have as many as its user may; usual limits are too low for a server, and are there for old programs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # a system with another limit that it does not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def for_clients() -> int:
    """How many clients leave enough for all else. Each may have two: its own, and that of the function which it calls."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MOST if soft == resource.RLIM_INFINITY else soft
    return max((limit - max(_KEPT, limit // 4)) // 2, limit // 4, 1)
