"""Enqueueing inside the caller's own transaction, on the connections of other libraries (E10)."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from treadle.core.errors import InvalidArgument, WrongDatabase
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.rows import Row

AsyncRun: TypeAlias = Callable[[str, Sequence[object]], Awaitable[Sequence[Row]]]
SyncRun: TypeAlias = Callable[[str, Sequence[object]], Sequence[Row]]

_PLACEHOLDER = re.compile(r"\$(\d+)")
KINDS = "a psycopg, asyncpg or SQLAlchemy connection or session"


def async_run(connection: Any) -> AsyncRun | None:
    """How to run a statement on this async connection or session; None if it is not one."""
    if isinstance(connection, psycopg.AsyncConnection):
        return _on_async_psycopg(connection)
    asyncpg = sys.modules.get("asyncpg")
    if asyncpg is not None and isinstance(connection, (asyncpg.Connection, asyncpg.pool.PoolConnectionProxy)):
        return lambda sql, parameters: connection.fetch(sql, *parameters)
    alchemy = sys.modules.get("sqlalchemy.ext.asyncio")
    if alchemy is not None and isinstance(
        connection, (alchemy.AsyncConnection, alchemy.AsyncSession, alchemy.async_scoped_session)
    ):
        return _on_async_sqlalchemy(connection)
    return None


def sync_run(connection: Any) -> SyncRun | None:
    """How to run a statement on this blocking connection or session; None if it is not one."""
    if isinstance(connection, psycopg.Connection):
        return _on_psycopg(connection)
    alchemy, orm = sys.modules.get("sqlalchemy"), sys.modules.get("sqlalchemy.orm")
    if alchemy is not None and isinstance(connection, alchemy.Connection):
        return _on_sqlalchemy(connection)
    if orm is not None and isinstance(connection, (orm.Session, orm.scoped_session)):
        return _on_sqlalchemy(connection)
    return None


def refused(connection: Any, wanted: str) -> InvalidArgument:
    """The error for a connection that cannot be used here."""
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    return InvalidArgument(f"connection must be {wanted} to the store's Postgres database, not {kind}")


def _on_async_psycopg(connection: psycopg.AsyncConnection[Any]) -> AsyncRun:
    async def run(sql: str, parameters: Sequence[object]) -> Sequence[Row]:
        async with psycopg.AsyncRawCursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
            await cursor.execute(sql.encode(), parameters)
            return await cursor.fetchall() if cursor.description else []

    return run


def _on_psycopg(connection: psycopg.Connection[Any]) -> SyncRun:
    def run(sql: str, parameters: Sequence[object]) -> Sequence[Row]:
        with psycopg.RawCursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute(sql.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    return run


# SQLAlchemy's own execution, never the driver's connection below it: until SQLAlchemy has sent a statement there is no
# transaction, and what went in beneath it would stay after a rollback.


def _on_async_sqlalchemy(session: Any) -> AsyncRun:
    async def run(sql: str, parameters: Sequence[object]) -> Sequence[Row]:
        connection = session if hasattr(session, "dialect") else await session.connection()
        _check(connection.dialect)
        result = await session.execute(*_named(sql, parameters))
        rows: Sequence[Row] = result.fetchall()
        return rows

    return run


def _on_sqlalchemy(session: Any) -> SyncRun:
    def run(sql: str, parameters: Sequence[object]) -> Sequence[Row]:
        connection = session if hasattr(session, "dialect") else session.connection()
        _check(connection.dialect)
        rows: Sequence[Row] = session.execute(*_named(sql, parameters)).fetchall()
        return rows

    return run


def _check(dialect: Any) -> None:
    if dialect.name != "postgresql":
        raise WrongDatabase(f"the connection is to {dialect.name}, and the store is on Postgres")


def _named(sql: str, parameters: Sequence[object]) -> tuple[Any, dict[str, object]]:
    text = sys.modules["sqlalchemy"].text
    return text(_PLACEHOLDER.sub(r"(:p\1)", sql)), {f"p{number}": value for number, value in enumerate(parameters, 1)}
