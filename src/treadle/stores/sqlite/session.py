"""What an operation is handed: it runs statements by name over a connection, whosever that is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from treadle.stores.sqlite.statements import statement

Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]
# Runs a statement and answers its rows; one that has none answers (rows changed, last rowid).
Execute: TypeAlias = Callable[[str, Parameters], Sequence[Row]]

# Lists of parameters as JSON. Not escaped to ASCII, so that a lone surrogate is refused here as everywhere, and never stored.
as_json: Callable[[object], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Session:
    """A transaction under way, of the store or of a caller (E10). `arrived` says whether jobs may have become claimable."""

    __slots__ = ("_execute", "arrived")

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self.arrived = False

    def rows(self, name: str, source: str = "", /, **parameters: Any) -> Sequence[Row]:
        """Run `queries/NAME.sql` and answer its rows."""
        return self._execute(statement(name, source), parameters)

    def value(self, name: str, source: str = "", /, **parameters: Any) -> Any:
        """The one value that the statement answers."""
        return self._execute(statement(name, source), parameters)[0][0]

    def loaded(self, name: str, source: str = "", /, **parameters: Any) -> Any:
        """The one value that the statement answers, decoded from JSON."""
        return json.loads(self._execute(statement(name, source), parameters)[0][0])

    def execute(self, sql: str, parameters: Parameters) -> Sequence[Row]:
        """Run a statement that was put together."""
        return self._execute(sql, parameters)


def fetched(cursor: sqlite3.Cursor) -> Sequence[Row]:
    """What `Execute` answers."""
    return [(cursor.rowcount, cursor.lastrowid)] if cursor.description is None else cursor.fetchall()


def executor(connection: sqlite3.Connection) -> Execute:
    """Statements over a plain connection."""

    def execute(sql: str, parameters: Parameters) -> Sequence[Row]:
        return fetched(connection.execute(sql, parameters))

    return execute
