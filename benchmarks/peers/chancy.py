"""Chancy on Postgres, with its asyncio executor."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import psycopg
from chancy import Chancy, Queue, Worker, job

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads


@job()
async def noop(*, load: Any) -> None:
    handle(load)


class ChancySubject(Subject):
    note = "asyncio executor, eager_polling, polling_interval 1 s, its smallest; results flushed once a second"
    packages = ("chancy", "psycopg")

    def _app(self) -> Chancy:
        return Chancy(self.url, log=logging.getLogger("quiet"))

    def _queue(self, concurrency: int) -> Queue:
        return Queue("default", concurrency=concurrency, executor=Chancy.Executor.Async, polling_interval=1, eager_polling=True)

    def _job(self, load: Any) -> Any:
        return noop.job.with_kwargs(load=load).with_queue("default")

    async def reset(self) -> None:
        async with self._app() as app:
            await app.migrate()

    async def open(self) -> None:
        self.app = self._app()
        await self.app.__aenter__()
        await self.app.declare(self._queue(10))
        self.connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)

    async def close(self) -> None:
        await self.connection.close()
        await self.app.__aexit__(None, None, None)

    async def one(self, kind: str, number: int) -> None:
        await self.app.push(self._job(payload(kind, number)))

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            async for _ in self.app.push_many([self._job(load) for load in call]):
                pass

    async def left(self) -> int:
        found = await self.connection.execute("SELECT count(*) FROM chancy_jobs WHERE state NOT IN ('succeeded', 'failed')")
        row = await found.fetchone()
        return int(row[0]) if row else 0

    def work(self, concurrency: int) -> None:
        asyncio.run(self._work(concurrency))

    async def _work(self, concurrency: int) -> None:
        async with self._app() as app:
            await app.declare(self._queue(concurrency), upsert=True)
            async with Worker(app) as worker:
                await worker.wait_for_shutdown()


SUBJECT = ChancySubject
