"""Checkpoints: the log is copied into the database while nobody can commit (S5)."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

from treadle.stores.sqlite.opening import LARGE_LOG, Options, connect

SAFE = (3, 51, 3)  # from this SQLite on, a checkpoint may coincide with a commit of another connection
_AGAIN = 1.0  # seconds, after a checkpoint that a reader kept from reaching the end


class Checkpointer:
    """Checkpoints over a second connection while the writer's holds the write lock.

    So no commit coincides with it, neither of the store's processes, which the lock file keeps out, nor of a caller's own
    connection that knows of no lock file (E10). Before 3.51.3 such a coincidence can damage the database.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._path = options.path
        self._connection: sqlite3.Connection | None = None
        self._not_before = 0.0

    def after_commit(self, writer: sqlite3.Connection) -> None:
        """Checkpoint if the log has grown large. The lock file is held. What fails is tried again later."""
        if log_size(self._path) > LARGE_LOG and time.monotonic() >= self._not_before:
            done = False
            with contextlib.suppress(sqlite3.Error):  # a full disk, for one; the log is as good as the database
                done = self._passive(writer)
            if not done:
                self._not_before = time.monotonic() + _AGAIN

    def _passive(self, writer: sqlite3.Connection) -> bool:
        if self._connection is None:
            self._connection = connect(self._options)
        writer.execute("BEGIN IMMEDIATE").close()
        try:
            _, in_log, copied = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        finally:
            writer.execute("ROLLBACK").close()
        return bool(in_log == copied)

    def close(self) -> None:
        """Give the second connection up. The lock file is held, since closing may checkpoint."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def connections(self) -> list[sqlite3.Connection]:
        """What must be left alone in the child of a fork."""
        return [] if self._connection is None else [self._connection]


def log_size(path: str) -> int:
    """The bytes of the log of the database at that path; 0 where there is none."""
    try:
        return Path(f"{path}-wal").stat().st_size
    except OSError:
        return 0


def empty_log(writer: sqlite3.Connection) -> None:
    """Copy the whole log and cut it to nothing, unless someone is reading it. The lock file is held."""
    with contextlib.suppress(sqlite3.Error):  # a courtesy: the log is as good as the database
        writer.execute("PRAGMA busy_timeout = 0").close()
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
