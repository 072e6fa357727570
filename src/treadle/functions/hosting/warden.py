"""The warden: a process beside the service that ends the service's functions if the service itself was killed.

It is run as a file, with the standard library alone. Its input is a pipe from the service: `+N` when the process group N was
started, `-N` when it is gone. The pipe's end means that the service is gone: what is left then gets SIGTERM, and SIGKILL after
the seconds of its first argument. Its other arguments are groups that were started before it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable

_AGAIN = 0.05


def main() -> None:
    """Watch over the groups until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a signal to everything in a terminal or a container must not end it first
    groups = {int(group) for group in sys.argv[2:]}
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    _end(groups, float(sys.argv[1]))


def _end(groups: set[int], within: float) -> None:
    left = _signalled(groups, signal.SIGTERM)
    for _ in range(int(within / _AGAIN)):
        left = _signalled(left, 0)
        if not left:
            return
        time.sleep(_AGAIN)
    _signalled(left, signal.SIGKILL)


def _signalled(groups: Iterable[int], number: int) -> set[int]:
    """Those of the groups that are still there to be signalled."""
    found = set()
    for group in groups:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            continue
        found.add(group)
    return found


if __name__ == "__main__":
    main()
