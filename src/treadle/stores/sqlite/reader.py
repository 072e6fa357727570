"""The reader: a thread and a connection for what only reads, so that a long list holds up no writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from treadle.stores.sqlite.abandoning import abandon
from treadle.stores.sqlite.asks import Answered, Ask, deliver
from treadle.stores.sqlite.faults import loses_connection, store_error
from treadle.stores.sqlite.lockfile import LockFile
from treadle.stores.sqlite.opening import Options, connect
from treadle.stores.sqlite.session import Session, executor


class Reader:
    """Owns the reading connection. Each operation has a transaction of its own, and so sees one moment."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = LockFile(f"{options.path}-lock", options.busy_timeout)
        self._connection: sqlite3.Connection | None = None

    def serve(self, batch: Sequence[Ask]) -> None:
        """Do the operations one after another, answering each at once."""
        for ask in batch:
            if not ask.abandoned:
                deliver([self._one(ask)])

    def rest(self) -> float | None:
        """Nothing to do in between."""
        return None

    def shut(self) -> bool:
        """Close under the lock: closing the last connection of a file checkpoints. Answers whether it is closed."""
        connection, self._connection = self._connection, None
        closed = True
        if connection is not None:
            try:
                self._lock.acquire()
                connection.close()
            except Exception:
                abandon([connection])
                closed = False
        self._lock.close()
        return closed

    def leave(self) -> None:
        """In the child of a fork that did not wait: touch nothing of the parent's (see forks.py)."""
        if self._connection is not None:
            abandon([self._connection])
        self._lock.close()

    def _one(self, ask: Ask) -> Answered:
        try:
            if self._connection is None:
                self._connection = connect(self._options)
                self._connection.execute("PRAGMA query_only = ON").close()
            connection = self._connection
            connection.execute("BEGIN").close()
            try:
                return ask, ask.operation(Session(executor(connection))), None
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT").close()
        except BaseException as error:
            if loses_connection(error):
                self.shut()
            return ask, None, store_error(error, self._options.path)
