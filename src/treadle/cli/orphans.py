"""Orphans: process 1 of a container inherits every process there whose parent has ended, and must reap it once it ends (L7)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

EVERY = 1.0
_PROC = Path("/proc")


async def reap_orphans() -> None:
    """Reap what ended and nobody waits for, for ever; does nothing where this is not process 1.

    Our own children are waited for by whoever started them, which takes no second. So what is still a zombie a round later is
    an orphan.
    """
    seen: set[int] = set()
    while os.getpid() == 1:
        zombies = set(_zombies())
        _reap(zombies & seen)
        seen = zombies
        await asyncio.sleep(EVERY)


def _reap(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _zombies() -> Iterator[int]:
    """The children of process 1 that have ended and were not reaped yet."""
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                state, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state == "Z" and parent == "1":
                yield int(folder.name)
