"""streaq on Redis streams."""

from __future__ import annotations

from typing import Any

from streaq import Worker

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads


class StreaqSubject(Subject):
    note = "ttl=0, no result kept; silent"
    packages = ("streaq", "coredis")

    def _app(self, concurrency: int) -> tuple[Any, Any]:
        worker: Any = Worker(redis_url=self.url, concurrency=concurrency)

        @worker.task(ttl=0, silent=True)
        async def noop(load: Any) -> None:
            handle(load)

        return worker, noop

    async def open(self) -> None:
        self.worker, self.noop = self._app(16)
        await self.worker.__aenter__()

    async def close(self) -> None:
        await self.worker.__aexit__(None, None, None)

    async def one(self, kind: str, number: int) -> None:
        await self.noop.enqueue(payload(kind, number))

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            await self.worker.enqueue_many([self.noop.enqueue(load) for load in call])

    async def left(self) -> int:
        return int(await self.worker.queue_size())

    def work(self, concurrency: int) -> None:
        self._app(concurrency)[0].run_sync()


SUBJECT = StreaqSubject
