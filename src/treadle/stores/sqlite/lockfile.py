"""The lock beside the database that every writer and checkpointer of treadle holds, in whatever process (S5)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import time

from treadle.core.errors import StoreUnavailable

_SHORTEST, _LONGEST = 0.0002, 0.005


class LockFile:
    """An exclusive `flock` on a file of its own.

    SQLite's own locks would do for writing, but before 3.51.3 a checkpoint that coincides with a commit which starts the
    write-ahead log anew can damage the database. The lock also makes waiting fair where SQLite's pauses grow to 0.1 s.
    """

    def __init__(self, path: str, patience: float) -> None:
        self.path = path
        self._patience = patience
        self._file: int | None = None

    def acquire(self) -> None:
        """Wait for the lock. Raises `StoreUnavailable` when the patience (seconds) is over, `OSError` without access."""
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        deadline: float | None = None
        pause = _SHORTEST
        while not self._try(self._file):
            # Not the blocking call: it cannot be given an end, and would hold this thread for ever behind a stopped process.
            now = time.monotonic()
            deadline = now + self._patience if deadline is None else deadline
            if now >= deadline:
                raise StoreUnavailable(
                    f"the lock {self.path} was held by another process for {self._patience:g} s; "
                    "end or continue that process, or raise busy_timeout"
                )
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  # spreads processes apart, guards no secret
            pause = min(pause * 1.5, _LONGEST)

    def release(self) -> None:
        """Let the next one in."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def ring(self) -> None:
        """Tell whoever watches the file that jobs have arrived: write to it, after the commit (see watching.py)."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk; the others look for themselves now and then
                os.pwrite(self._file, b"!", 0)

    def close(self) -> None:
        """Give the file up, and the lock with it, unless a parent or child process has it too. The file stays.

        Removing it would let two processes lock two files of the same name.
        """
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None

    @staticmethod
    def _try(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
