"""The store's side of enqueueing on a caller's connection: the right database, the jobs, the wake-up (EnqueueOn, E10)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import datetime
from typing import Any

from treadle.core.errors import TreadleError, WrongDatabase
from treadle.core.job import Enqueued, NewJob
from treadle.stores.postgres import foreign
from treadle.stores.postgres.connecting import connected
from treadle.stores.postgres.cutting import cut_after
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import mapped, missing
from treadle.stores.postgres.part import Part
from treadle.stores.postgres.rows import Row
from treadle.stores.postgres.statements import statements
from treadle.stores.postgres.storing import Statement, Storing, batches, storing


class Transactional(Part):
    """Enqueues that are the caller's to commit."""

    _identity: tuple[int, int] | None = None

    async def enqueue_on(self, connection: Any, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """As `enqueue`, on the caller's connection or session: the jobs exist if and only if its transaction commits (E10).

        Takes psycopg, asyncpg and SQLAlchemy connections and sessions; a blocking one is used as it is, on this thread. A key
        that another open transaction holds makes it wait for that one. Raises `WrongDatabase`, `InvalidArgument` for other
        connections, `SchemaMissing`, or another `TreadleError`, after which the transaction is to be rolled back.
        """
        run = foreign.async_run(connection)
        if run is None:
            if foreign.sync_run(connection) is None:
                raise foreign.refused(connection, foreign.KINDS)
            return self.enqueue_on_sync(connection, jobs, now=now)
        if not jobs:
            return []
        await self._runner.ready()
        steps = self._steps(jobs, now)
        sql = statements(self._runner.settings.schema)
        try:
            name, parameters = next(steps)
            while True:
                if name == "own identity":
                    name, parameters = steps.send(await self._read("identity", *parameters))
                else:
                    name, parameters = steps.send(await run(sql[name], parameters))
        except StopIteration as end:
            answers: list[Enqueued] = end.value
            return answers
        except Exception as error:
            raise self._clear(error) from error

    def enqueue_on_sync(self, connection: Any, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """The same on a blocking connection or session (E10)."""
        run = foreign.sync_run(connection)
        if run is None:
            wanted = "a blocking psycopg or SQLAlchemy connection or session"
            raise foreign.refused(
                connection, wanted if foreign.async_run(connection) is None else f"{wanted}, not an async one,"
            )
        if not jobs:
            return []
        self._runner.ready_blocking()
        steps = self._steps(jobs, now)
        sql = statements(self._runner.settings.schema)
        try:
            name, parameters = next(steps)
            while True:
                if name == "own identity":
                    name, parameters = steps.send(self._blocking("identity", parameters))
                else:
                    name, parameters = steps.send(run(sql[name], parameters))
        except StopIteration as end:
            answers: list[Enqueued] = end.value
            return answers
        except Exception as error:
            raise self._clear(error) from error

    def _steps(self, jobs: Sequence[NewJob], now: datetime | None) -> Storing:
        """The statements of one call: which database this is, the jobs, the word to the listeners."""
        yield from self._same_database()
        answers: list[Enqueued] = []
        for batch in batches(jobs):
            answers += yield from storing(batch, now)
        if self._runner.settings.notify and any(answer.created for answer in answers):
            yield "notify_here", [self._runner.settings.channel]
        return answers

    def _same_database(self) -> Generator[Statement, Sequence[Row], None]:
        table = f'"{self._runner.settings.schema}".jobs'
        [(database, started, there)] = yield "identity", [table]
        if (database, started) != self._identity:
            [(own, own_started, _)] = yield "own identity", [table]  # it may be new to us, or the server was restarted
            self._identity = (own, own_started)
            if (database, started) != self._identity:
                raise WrongDatabase(
                    "the connection is to another database than the store's, which is "
                    f"{self._runner.settings.place}; nothing was stored"
                )
        if not there:
            raise missing(self._runner.settings.schema)

    def _blocking(self, name: str, parameters: Sequence[object]) -> Sequence[Row]:
        settings = self._runner.settings
        with connected(settings) as connection, cut_after(settings.answer_timeout, connection):
            return psycopg.RawCursor(connection).execute(statements(settings.schema)[name].encode(), parameters).fetchall()

    def _clear(self, error: Exception) -> Exception:
        return error if isinstance(error, TreadleError) else mapped(error, self._runner.settings.schema)
