"""Procrastinate on Postgres, asynchronous, with psycopg."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from procrastinate import App, PsycopgConnector

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads

app = App(connector=PsycopgConnector(conninfo=os.environ["BENCH_URL"]))


@app.task(name="noop")
async def noop(load: Any) -> None:
    handle(load)


class ProcrastinateSubject(Subject):
    note = "finished jobs kept; LISTEN/NOTIFY on"
    packages = ("procrastinate", "psycopg")

    async def reset(self) -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        await app.open_async()

    async def close(self) -> None:
        await app.close_async()

    async def one(self, kind: str, number: int) -> None:
        await noop.defer_async(load=payload(kind, number))

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            await noop.batch_defer_async(*[{"load": load} for load in call])

    async def _counts(self) -> dict[str, int]:
        rows = await app.connector.execute_query_all_async(
            "SELECT status::text, count(*) AS jobs FROM procrastinate_jobs GROUP BY 1"
        )
        return {row["status"]: row["jobs"] for row in rows}

    async def left(self) -> int:
        counts = await self._counts()
        return counts.get("todo", 0) + counts.get("doing", 0)

    async def ended(self) -> Mapping[str, int]:
        counts = await self._counts()
        return {"done": counts.get("succeeded", 0), "dead": counts.get("failed", 0)}

    def work(self, concurrency: int) -> None:
        asyncio.run(self._work(concurrency))

    async def _work(self, concurrency: int) -> None:
        async with app.open_async():
            await app.run_worker_async(concurrency=concurrency)


SUBJECT = ProcrastinateSubject
