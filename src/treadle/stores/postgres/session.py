"""One connection at work: it runs statements, and gives up on a server that falls silent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from treadle.core.errors import StoreUnavailable
from treadle.stores.postgres.arrays import Texts, TextsDumper
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import mapped, unreachable
from treadle.stores.postgres.rows import Row
from treadle.stores.postgres.settings import Settings
from treadle.stores.postgres.statements import Statements, statements

# UTC, so that moments come back as they are meant. Every statement here goes through an index by design, and is planned once:
# a plan made while a table was empty must be right at a million rows too. Compiling plans costs more than any of them runs.
OWN_SERVER = (
    b"set timezone = 'UTC'; set plan_cache_mode = force_generic_plan; set enable_seqscan = off; "
    b"set enable_bitmapscan = off; set jit = off; set default_transaction_isolation = 'read committed'"
)
# Behind a pooler a setting stays for others; it keeps track of the time zone alone.
_POOLED = b"set timezone = 'UTC'"

Watch = Callable[[int], Coroutine[Any, Any, bool]]
"""Asks on another connection whether the server process of that id is still at work."""


class Session:
    """A psycopg connection in autocommit mode, used by one task at a time."""

    def __init__(self, connection: psycopg.AsyncConnection[tuple[Any, ...]], settings: Settings, watch: Watch) -> None:
        connection.adapters.register_dumper(Texts, TextsDumper)
        self._connection = connection
        self._cursor = psycopg.AsyncRawCursor(connection)
        self._settings = settings
        self._watch = watch
        self._tasks: set[asyncio.Task[None]] = set()
        self.sql: Statements = statements(settings.schema)
        self.process = connection.pgconn.backend_pid
        self.since = time.monotonic()

    @classmethod
    async def open(cls, settings: Settings, watch: Watch) -> Session:
        """Connect. Raises `StoreUnavailable`, naming the server but no password."""
        try:
            async with asyncio.timeout(settings.connect_timeout):
                connection = await psycopg.AsyncConnection.connect(
                    "",
                    autocommit=True,
                    prepare_threshold=0 if settings.prepared_statements else None,
                    **settings.conninfo,  # type: ignore[arg-type]  # parameters of libpq, by name
                )
        except TimeoutError:
            raise StoreUnavailable(
                f"Postgres at {settings.place} did not answer within {settings.connect_timeout:g} s"
            ) from None
        except (psycopg.Error, OSError, UnicodeError) as error:
            raise unreachable(settings.place, error) from None
        session = cls(connection, settings, watch)
        try:
            with session._deadline(patient=False):
                await connection.execute(OWN_SERVER if settings.prepared_statements else _POOLED, prepare=False)
        except psycopg.Error as error:
            session.close()
            raise mapped(error, settings.schema) from None
        except BaseException:
            session.close()
            raise
        return session

    async def fetch(self, name: str, *parameters: object, patient: bool = False) -> list[Row]:
        """Run the statement of that name and answer its rows. Raises the driver's errors, which `Runner` maps.

        A `patient` statement may wait for others' locks, or read much: it goes on as long as the server is at work on it.
        """
        with self._deadline(patient):
            await self._cursor.execute(self.sql[name].encode(), parameters, binary=True)
            return list(await self._cursor.fetchall()) if self._cursor.description else []

    async def script(self, sql: str) -> None:
        """Run statements without parameters, such as a migration."""
        with self._deadline(patient=True):
            await self._connection.execute(sql.encode(), prepare=False)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """What is run inside happens as a whole or not at all."""
        async with self._connection.transaction():
            yield

    @property
    def usable(self) -> bool:
        """Whether it can be used again: open, outside a transaction, and nothing to read, which for an idle one is its end."""
        connection = self._connection.pgconn
        if connection.status != psycopg.pq.ConnStatus.OK:
            return False
        if connection.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            return False
        poll = select.poll()
        poll.register(connection.socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Give the connection up, from any thread as long as nothing runs on it; no loop is needed."""
        self._connection.pgconn.finish()

    @contextlib.contextmanager
    def _deadline(self, patient: bool) -> Any:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._settings.answer_timeout, self._overdue, patient)
        self._timer = timer
        try:
            yield
        finally:
            self._timer.cancel()

    def _overdue(self, patient: bool) -> None:
        if not patient:
            self._cut()
            return
        task = asyncio.get_running_loop().create_task(self._ask())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self) -> None:
        """Go on waiting if the server is at work, else cut the connection."""
        timer = self._timer
        try:
            at_work = await self._watch(self._connection.pgconn.backend_pid)
        except Exception:
            at_work = False
        if timer is not self._timer or timer.cancelled():
            return  # the answer came meanwhile
        if at_work:
            self._timer = asyncio.get_running_loop().call_later(self._settings.answer_timeout, self._overdue, True)
        else:
            self._cut()

    def _cut(self) -> None:
        cut(self._connection.pgconn)


def cut(connection: psycopg.pq.abc.PGconn) -> None:
    """End the TCP connection under a statement that waits on it: the wait then fails like that on a server that went away."""
    with contextlib.suppress(OSError, psycopg.Error):
        with socket.socket(fileno=os.dup(connection.socket)) as wire:
            wire.shutdown(socket.SHUT_RDWR)
