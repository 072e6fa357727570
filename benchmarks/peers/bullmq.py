"""BullMQ for Python on Redis."""

from __future__ import annotations

import asyncio
from typing import Any

from bullmq import Queue, Worker

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads


class BullMQSubject(Subject):
    note = "removeOnComplete; hiredis is not among its requirements"
    packages = ("bullmq", "redis")

    async def open(self) -> None:
        self.queue = Queue("bench", {"connection": self.url, "defaultJobOptions": {"removeOnComplete": True}})

    async def close(self) -> None:
        await self.queue.close()

    async def one(self, kind: str, number: int) -> None:
        await self.queue.add("noop", {"load": payload(kind, number)})

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            await self.queue.addBulk([{"name": "noop", "data": {"load": load}} for load in call])

    async def left(self) -> int:
        counts = await self.queue.getJobCounts("wait", "active", "waiting", "paused", "prioritized", "delayed")
        return int(sum(counts.values()))

    def work(self, concurrency: int) -> None:
        asyncio.run(self._work(concurrency))

    async def _work(self, concurrency: int) -> None:
        async def noop(job: Any, token: str) -> None:
            handle(job.data["load"])

        worker = Worker("bench", noop, {"connection": self.url, "concurrency": concurrency})
        await asyncio.Event().wait()
        await worker.close()


SUBJECT = BullMQSubject
