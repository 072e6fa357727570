"""SAQ, on Redis or Postgres."""

from __future__ import annotations

import asyncio
from typing import Any

from saq import Queue, Worker

from benchmarks.load import handle, payload
from benchmarks.subject import Subject


async def noop(context: Any, *, load: Any) -> None:
    handle(load)


class SAQSubject(Subject):
    """`variant` is `redis` or `postgres`."""

    note = "ttl=-1, a job is forgotten when it is done"
    packages = ("saq",)

    async def open(self) -> None:
        self.queue = Queue.from_url(self.url)
        await self.queue.connect()

    async def close(self) -> None:
        await self.queue.disconnect()

    async def one(self, kind: str, number: int) -> None:
        await self.queue.enqueue("noop", load=payload(kind, number), ttl=-1)

    async def fill(self, kind: str, jobs: int) -> None:
        for start in range(0, jobs, 50):
            await asyncio.gather(*(self.one(kind, number) for number in range(start, min(start + 50, jobs))))

    async def left(self) -> int:
        if self.variant == "redis":
            return int(await self.queue.count("incomplete"))
        async with self.queue.pool.connection() as connection:
            found = await connection.execute("SELECT count(*) FROM saq_jobs WHERE status IN ('queued', 'active')")
            return int((await found.fetchone())[0])

    def work(self, concurrency: int) -> None:
        asyncio.run(self._work(concurrency))

    async def _work(self, concurrency: int) -> None:
        queue = Queue.from_url(self.url)
        await queue.connect()
        await Worker(queue, functions=[("noop", noop)], concurrency=concurrency).start()


SUBJECT = SAQSubject
