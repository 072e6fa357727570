"""DBOS on Postgres: a queued workflow without steps, the least that it can record."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from dbos import DBOS, DBOSClient, DBOSConfig

from benchmarks.load import handle, payload
from benchmarks.subject import Subject


@DBOS.workflow(name="noop")
async def noop(load: Any) -> None:
    handle(load)


class DBOSSubject(Subject):
    note = "finished workflows kept; concurrency = worker_concurrency; polling_interval 0.02 s (default 1.0)"
    packages = ("dbos", "psycopg", "sqlalchemy")
    threads = True

    def _config(self) -> DBOSConfig:
        return {"name": "bench", "system_database_url": self.url, "run_admin_server": False, "log_level": "ERROR"}

    async def reset(self) -> None:
        DBOS(config=self._config())
        DBOS.launch()
        DBOS.destroy()

    async def open(self) -> None:
        self.client = DBOSClient(system_database_url=self.url)
        self.connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)

    async def close(self) -> None:
        self.client.destroy()
        await self.connection.close()

    def one_blocking(self, kind: str, number: int) -> None:
        self.client.enqueue({"queue_name": "bench", "workflow_name": "noop"}, payload(kind, number))

    async def left(self) -> int:
        found = await self.connection.execute(
            "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"
        )
        row = await found.fetchone()
        return int(row[0]) if row else 0

    def work(self, concurrency: int) -> None:
        asyncio.run(self._work(concurrency))

    async def _work(self, concurrency: int) -> None:
        DBOS(config=self._config())
        DBOS.launch()
        await DBOS.register_queue_async("bench", worker_concurrency=concurrency, polling_interval_sec=0.02)
        await asyncio.Event().wait()


SUBJECT = DBOSSubject
