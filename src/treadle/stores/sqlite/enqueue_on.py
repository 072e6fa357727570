"""Enqueueing inside a transaction of the caller's own, on sqlite3 and SQLAlchemy connections and sessions (E10)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from treadle.core.errors import InvalidArgument, SchemaMissing, SchemaTooNew, WrongDatabase
from treadle.core.job import Enqueued, NewJob
from treadle.stores.sqlite.checkpoints import SAFE, log_size
from treadle.stores.sqlite.connection import Connection
from treadle.stores.sqlite.enqueueing import answers, store_jobs
from treadle.stores.sqlite.faults import store_error
from treadle.stores.sqlite.moments import present
from treadle.stores.sqlite.opening import LARGE_LOG, Options
from treadle.stores.sqlite.session import Execute, Parameters, Row, Session, fetched
from treadle.stores.sqlite.statements import migrations

_SELDOM = 1.0  # seconds between two checkpoints that callers have the store make
_ACCEPTED = "a sqlite3.Connection, or a SQLAlchemy connection or session on SQLite"


class CallersTransaction:
    """The part of the store that enqueues on connections which are not its own.

    With SQLite before 3.51.3 the caller's connection is set to `wal_autocheckpoint = 0`: a checkpoint made by it could
    coincide with a commit of another process, which the file may not survive. The store checkpoints what the caller commits.
    """

    _options: Options
    _connection: Connection
    _tidied = 0.0

    async def enqueue_on(self, connection: Any, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """As `enqueue`, on the caller's connection or session; the jobs exist if and only if its transaction commits (E10).

        The connection must be to the store's own file: else `WrongDatabase`. Raises `SchemaMissing` where the store was
        never opened or migrated, and `StoreUnavailable` where another writer keeps the file longer than the connection waits.
        """
        kind = _kind(connection)
        if kind not in ("AsyncConnection", "AsyncSession", "async_scoped_session"):
            return self.enqueue_on_sync(connection, jobs, now=now)

        def work(inner: Any) -> list[Enqueued]:
            return self.enqueue_on_sync(inner, jobs, now=now)

        told: list[Enqueued] = await connection.run_sync(work)
        return told

    def enqueue_on_sync(self, connection: Any, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """The same on a blocking connection or session, in the caller's thread (E10)."""
        try:
            execute, whole = _access(connection)
            self._check(execute)
            self._leave_checkpoints(execute)
            with whole:
                stored = store_jobs(Session(execute), jobs, present(now)) if jobs else None
        except Exception as error:
            told = store_error(error, self._options.path)
            if told is error:
                raise
            raise told from None
        return [] if stored is None else answers(jobs, stored)

    def _check(self, execute: Execute) -> None:
        """That the connection is to this store's database, and the tables are there."""
        [file] = [row[2] for row in execute("PRAGMA database_list", ()) if row[1] == "main"]
        if not _same(file, self._options.path):
            raise WrongDatabase(
                f"the connection is to {file or 'a database in memory'}, and the store to {self._options.path}; "
                "hand in a connection to the store's own file"
            )
        if not execute("SELECT 1 FROM sqlite_master WHERE name = 'treadle_schema'", ()):
            raise SchemaMissing(f"{file} holds no treadle tables yet; open the store once, or run `treadle migrate`")
        [(version,)] = execute("SELECT max(version) FROM treadle_schema", ())
        newest = len(migrations())
        if version > newest:
            raise SchemaTooNew(
                f"the tables in {file} have schema version {version}, and this treadle knows up to {newest}; upgrade it"
            )
        if version != newest:
            raise SchemaMissing(
                f"the tables in {file} have schema version {version}, not {newest}; run `treadle migrate` first"
            )

    def _leave_checkpoints(self, execute: Execute) -> None:
        """Where the connection may make no checkpoint, have the store make one, should nobody else have done so for long.

        The store's own writes keep the log at half of this.
        """
        [(version,)] = execute("SELECT sqlite_version()", ())
        if tuple(map(int, version.split("."))) >= SAFE:
            return
        execute("PRAGMA wal_autocheckpoint = 0", ())
        now = time.monotonic()
        if now >= self._tidied + _SELDOM and log_size(self._options.path) > 2 * LARGE_LOG:
            self._tidied = now
            if execute("PRAGMA journal_size_limit", ()) == [
                (-1,)
            ]:  # else the log would keep its length, and look large for ever
                execute(f"PRAGMA journal_size_limit = {LARGE_LOG}", ())
            self._connection.tidy()


def _kind(connection: object) -> str:
    """The SQLAlchemy class that it is one of, by name, so that SQLAlchemy is not imported here; else ''."""
    for base in type(connection).__mro__:
        if base.__module__.partition(".")[0] == "sqlalchemy" and base.__name__ in _SQLALCHEMY:
            return base.__name__
    return ""


_SQLALCHEMY = {
    "Connection",
    "Session",
    "scoped_session",
    "AsyncConnection",
    "AsyncSession",
    "async_scoped_session",
}


def _access(connection: Any) -> tuple[Execute, AbstractContextManager[Any]]:
    """How to run statements on it, and what to run them in."""
    if isinstance(connection, sqlite3.Connection):
        return _of_sqlite3(connection), _whole(connection)
    match _kind(connection):
        case "Connection":
            return _of_sqlalchemy(connection), nullcontext()
        case "Session" | "scoped_session":
            return _of_sqlalchemy(connection.connection()), nullcontext()
        case "AsyncConnection" | "AsyncSession" | "async_scoped_session":
            raise InvalidArgument(
                "an async connection or session cannot be used by a blocking call; await the async one instead"
            )
        case _:
            raise InvalidArgument(
                f"connection must be {_ACCEPTED}, not {type(connection).__module__}.{type(connection).__name__}"
            )


def _of_sqlite3(connection: sqlite3.Connection) -> Execute:
    def execute(sql: str, parameters: Parameters) -> Sequence[Row]:
        cursor = connection.cursor()
        cursor.row_factory = None  # the caller's own may make anything of a row
        return fetched(cursor.execute(sql, parameters))

    return execute


def _of_sqlalchemy(connection: Any) -> Execute:
    if connection.dialect.name != "sqlite":
        raise WrongDatabase(f"the connection is to a database of {connection.dialect.name}, and the store is a SQLite file")

    def execute(sql: str, parameters: Parameters) -> Sequence[Row]:
        result = connection.exec_driver_sql(sql, parameters or None)
        return [tuple(row) for row in result] if result.returns_rows else [(result.rowcount, result.lastrowid)]

    return execute


@contextmanager
def _whole(connection: sqlite3.Connection) -> Iterator[None]:
    """Make the statements one step on a connection in autocommit mode, where each would be committed by itself."""
    autocommit = connection.isolation_level is None or getattr(connection, "autocommit", None) is True  # the latter: 3.12
    if connection.in_transaction or not autocommit:
        yield
        return
    connection.execute("BEGIN IMMEDIATE").close()
    try:
        yield
        connection.execute("COMMIT").close()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK").close()
        raise


def _same(file: str | None, path: str) -> bool:
    if not file:
        return False
    try:
        return Path(file).samefile(path)
    except OSError:
        return Path(file).resolve() == Path(path).resolve()
