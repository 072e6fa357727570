"""Opening a connection of the store's own, with the settings that all of them share."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from treadle.core.errors import StoreError

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

MEMORY = ":memory:"
OLDEST = (3, 37, 0)  # STRICT tables; RETURNING and UPDATE ... FROM are older
_CACHE_KIB = 16_384
LARGE_LOG = 4 * 1024 * 1024  # bytes at which it is checkpointed


@dataclass(frozen=True, slots=True)
class Options:
    """Where the database is, how safe a commit is against a power cut, and how many seconds to wait for a lock."""

    path: str
    synchronous: Synchronous
    busy_timeout: float

    @property
    def in_memory(self) -> bool:
        """Whether there is no file."""
        return self.path == MEMORY


def make_folder(options: Options) -> None:
    """Create the folder that the database goes into. Raises `OSError`."""
    if not options.in_memory:
        Path(options.path).parent.mkdir(parents=True, exist_ok=True)


def connect(options: Options) -> sqlite3.Connection:
    """A connection in autocommit mode. Raises `StoreError` where SQLite is too old, else what sqlite3 and the system raise."""
    if sqlite3.sqlite_version_info < OLDEST:
        found, wanted = sqlite3.sqlite_version, ".".join(map(str, OLDEST))
        raise StoreError(f"this Python brings SQLite {found}; treadle needs {wanted} or newer")
    connection = sqlite3.connect(
        options.path,
        timeout=options.busy_timeout,
        isolation_level=None,
        check_same_thread=False,  # each connection has one thread, but another may be the one to close it
        cached_statements=256,
    )
    try:
        _set_up(connection, options)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection, options: Options) -> None:
    for pragma in (
        f"synchronous = {options.synchronous}",
        # Checkpoints are made by treadle alone, under its lock: see checkpoints.py.
        "wal_autocheckpoint = 0",
        # When the log starts anew it is cut to this, so that a larger one is known to hold what is not checkpointed. It is not
        # cut to nothing: writing over a log costs half of what letting it grow again does.
        f"journal_size_limit = {LARGE_LOG}",
        # Some builds overwrite what is deleted with zeros, which doubles the writing; a queue has no use for it.
        "secure_delete = OFF",
        f"cache_size = -{_CACHE_KIB}",
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}").close()
