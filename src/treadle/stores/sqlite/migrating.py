"""Migrating: numbered schema versions, applied under the lock in one transaction (S4)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from treadle.core.errors import SchemaTooNew
from treadle.stores.sqlite.statements import migrations


def version(connection: sqlite3.Connection) -> int:
    """The schema version of the database; 0 where it has no treadle tables.

    It is kept in a table, and not in `PRAGMA user_version`, since that belongs to the application whose file it may be (E10).
    """
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'treadle_schema'").fetchone()
    if found is None:
        return 0
    row = connection.execute("SELECT max(version) FROM treadle_schema").fetchone()
    return int(row[0] or 0)


def current(connection: sqlite3.Connection) -> bool:
    """Whether there is nothing to migrate."""
    return version(connection) == len(migrations())


def migrate(connection: sqlite3.Connection, path: str) -> str:
    """Bring the schema up to date, inside the transaction that is open; answers what was done.

    Raises `SchemaTooNew` where the database is of a newer treadle.
    """
    newest, found = len(migrations()), version(connection)
    if found > newest:
        raise SchemaTooNew(
            f"the SQLite store {path} has schema version {found}, and this treadle knows up to {newest}; upgrade it"
        )
    if found == newest:
        return f"The SQLite store {path} is up to date, at schema version {newest}."
    if found == 0:
        connection.execute("CREATE TABLE treadle_schema (version INTEGER PRIMARY KEY) STRICT").close()
    for number in range(found + 1, newest + 1):
        for sql in statements_of(migrations()[number - 1]):
            connection.execute(sql).close()
        connection.execute("INSERT INTO treadle_schema (version) VALUES (?)", (number,)).close()
    if found == 0:
        return f"The SQLite store {path} was created, at schema version {newest}."
    return f"The SQLite store {path} was brought from schema version {found} to {newest}."


def statements_of(script: str) -> Iterator[str]:
    """The single statements of a script. `executescript` would not do: it commits the transaction that is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip() and any(line.strip() and not line.lstrip().startswith("--") for line in statement.splitlines()):
        yield statement
