"""One connection at work: it runs statements, and gives up on a server that falls silent."""

from __future__ import annotations

import asyncio
import contextlib
import select
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import datetime
from typing import Any

from treadle.core.errors import StoreUnavailable
from treadle.stores.postgres.arrays import Texts, TextsDumper
from treadle.stores.postgres.cutting import cut
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import mapped, unreachable
from treadle.stores.postgres.leaving import leave
from treadle.stores.postgres.rows import Row
from treadle.stores.postgres.settings import Settings
from treadle.stores.postgres.statements import Statements, statements

# UTC, so that moments come back as they are meant. Every statement here goes through an index by design, and is planned once:
# a plan made while a table was empty must be right at a million rows too. Compiling plans costs more than any of them runs.
OWN_SERVER = (
    b"set timezone = 'UTC'; set plan_cache_mode = force_generic_plan; set enable_seqscan = off; "
    b"set enable_bitmapscan = off; set jit = off; set default_transaction_isolation = 'read committed'"
)
_STARTED = b"; select backend_start from pg_stat_activity where pid = pg_backend_pid()"
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
        self.started: datetime | None = None
        self.read_only = False

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
                if settings.prepared_statements:
                    session.started = await _set_up(connection)
                else:
                    await connection.execute(_POOLED, prepare=False)
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
            try:
                await self._cursor.execute(self.sql[name].encode(), parameters, binary=True)
            except psycopg.errors.ReadOnlySqlTransaction:
                self.read_only = True  # where writing goes on, a new connection may lead to
                raise
            return list(await self._cursor.fetchall()) if self._cursor.description else []

    async def script(self, sql: str) -> None:
        """Run statements without parameters, such as a migration."""
        with self._deadline(patient=True):
            await self._connection.execute(sql.encode(), prepare=False)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """What is run inside happens as a whole or not at all."""
        block = self._connection.transaction()
        with self._deadline(patient=True):
            await block.__aenter__()
        try:
            yield
        except BaseException:
            with self._deadline(patient=True):
                await block.__aexit__(*sys.exc_info())
            raise
        with self._deadline(patient=True):
            await block.__aexit__(None, None, None)

    @property
    def usable(self) -> bool:
        """Whether it can be used again: open, outside a transaction, not refused as a writer, and with nothing to read.

        For an idle one something to read is its end.
        """
        connection = self._connection.pgconn
        if self.read_only or connection.status != psycopg.pq.ConnStatus.OK:
            return False
        if connection.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            return False
        poll = select.poll()
        poll.register(connection.socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Give the connection up, from any thread as long as nothing runs on it; no loop is needed."""
        self._connection.pgconn.finish()

    def leave(self, *, idle: bool) -> None:
        """In the child of a fork: it is the parent's (see stores/forks.py)."""
        leave(self._connection, idle=idle)

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


async def _set_up(connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> datetime | None:
    """Settle how statements are run, and ask when the server process began: with its id, that names it for ever."""
    cursor = await connection.execute(OWN_SERVER + _STARTED, prepare=False)
    while cursor.nextset():
        pass
    row = await cursor.fetchone()
    return None if row is None else row[0]
