"""Oban for Python, the open-source one, on Postgres."""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from oban import Oban, job
from oban.schema import install
from psycopg_pool import AsyncConnectionPool

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads


@job(queue="default", max_attempts=1)
async def noop(load: Any) -> None:
    handle(load)


class ObanSubject(Subject):
    note = "uvloop; concurrency = queue limit; debounce of 5 ms and stager of 1 s, its defaults"
    packages = ("oban", "psycopg", "uvloop")

    def _pool(self) -> AsyncConnectionPool:
        return AsyncConnectionPool(self.url, open=False, min_size=1)

    async def reset(self) -> None:
        async with self._pool() as pool:
            await install(pool)

    async def open(self) -> None:
        self.pool = self._pool()
        await self.pool.open()
        self.oban = Oban(pool=self.pool)

    async def close(self) -> None:
        await self.pool.close()

    async def one(self, kind: str, number: int) -> None:
        await self.oban.enqueue(noop.new(payload(kind, number)))

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            await self.oban.enqueue_many([noop.new(load) for load in call])

    async def left(self) -> int:
        async with self.pool.connection() as connection:
            found = await connection.execute("SELECT count(*) FROM oban_jobs WHERE state NOT IN ('completed', 'discarded')")
            row = await found.fetchone()
        return int(row[0]) if row else 0

    def work(self, concurrency: int) -> None:
        uvloop.run(self._work(concurrency))

    async def _work(self, concurrency: int) -> None:
        async with self._pool() as pool, Oban(pool=pool, queues={"default": concurrency}):
            await asyncio.Event().wait()


SUBJECT = ObanSubject
