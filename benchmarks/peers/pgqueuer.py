"""PgQueuer on Postgres, with the asyncpg driver and uvloop, as its command sets up."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads


def _body(load: Any) -> bytes:
    return json.dumps(load).encode()


class PgQueuerSubject(Subject):
    note = "uvloop; concurrency = batch_size, the number of running tasks unlimited, its default"
    packages = ("pgqueuer", "asyncpg", "uvloop")

    async def reset(self) -> None:
        connection = await asyncpg.connect(self.url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    async def open(self) -> None:
        self.connection = await asyncpg.connect(self.url)
        self.pool = await asyncpg.create_pool(self.url, min_size=8, max_size=8)
        self.queries = Queries(AsyncpgDriver(self.connection))

    async def close(self) -> None:
        await self.pool.close()
        await self.connection.close()

    async def one(self, kind: str, number: int) -> None:
        await self.queries.enqueue("noop", _body(payload(kind, number)))

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            await self.queries.enqueue(["noop"] * len(call), [_body(load) for load in call], [0] * len(call))

    async def left(self) -> int:
        return int(await self.pool.fetchval("SELECT count(*) FROM pgqueuer"))

    def work(self, concurrency: int) -> None:
        uvloop.run(self._work(concurrency))

    async def _work(self, concurrency: int) -> None:
        queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(self.url)))

        @queuer.entrypoint("noop")
        async def noop(job: Job) -> None:
            handle(json.loads(job.payload or b""))

        await queuer.run(batch_size=concurrency)


SUBJECT = PgQueuerSubject
