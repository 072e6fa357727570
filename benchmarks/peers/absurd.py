"""Absurd on Postgres: a task without steps. Its schema comes with absurdctl."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from absurd_sdk import AsyncAbsurd
from absurdctl import BUNDLED_SCHEMA_SQL

from benchmarks.load import handle, payload
from benchmarks.subject import Subject


class AbsurdSubject(Subject):
    note = "finished tasks kept; concurrency and batch_size alike; poll_interval 0.02 s (default 0.25)"
    packages = ("absurd-sdk", "absurdctl", "psycopg")

    def _app(self) -> AsyncAbsurd:
        app = AsyncAbsurd(self.url, queue_name="bench")

        @app.register_task("noop", default_max_attempts=1)
        async def noop(params: Any, context: Any) -> None:
            handle(params["load"])

        return app

    async def reset(self) -> None:
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            await connection.execute(BUNDLED_SCHEMA_SQL)
        app = self._app()
        await app.create_queue()
        await app.close()

    async def open(self) -> None:
        self.app = self._app()
        self.connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)

    async def close(self) -> None:
        await self.app.close()
        await self.connection.close()

    async def one(self, kind: str, number: int) -> None:
        await self.app.spawn("noop", {"load": payload(kind, number)})

    async def left(self) -> int:
        found = await self.connection.execute("SELECT count(*) FROM absurd.t_bench WHERE state NOT IN ('completed', 'failed')")
        row = await found.fetchone()
        return int(row[0]) if row else 0

    def work(self, concurrency: int) -> None:
        asyncio.run(self._app().start_worker(concurrency=concurrency, batch_size=concurrency, poll_interval=0.02))


SUBJECT = AbsurdSubject
