"""Taskiq on Redis, with its stream broker, the one that acknowledges."""

from __future__ import annotations

import os
from typing import Any

from redis.asyncio import Redis
from taskiq_redis import RedisStreamBroker

from benchmarks.load import handle, payload
from benchmarks.processes import serve
from benchmarks.subject import Subject

broker = RedisStreamBroker(os.environ["BENCH_URL"], queue_name="bench")


@broker.task(task_name="noop")
async def noop(load: Any) -> None:
    handle(load)


class TaskiqSubject(Subject):
    note = "stream broker; no result backend; one worker process; prefetch = concurrency"
    packages = ("taskiq", "taskiq-redis", "redis", "uvloop")

    async def open(self) -> None:
        await broker.startup()
        self.redis = Redis.from_url(self.url)

    async def close(self) -> None:
        await broker.shutdown()
        await self.redis.aclose()

    async def one(self, kind: str, number: int) -> None:
        await noop.kiq(payload(kind, number))

    async def left(self) -> int:
        return int((await self.redis.xpending("bench", "taskiq"))["pending"])

    def work(self, concurrency: int) -> None:
        serve(
            "taskiq", "worker", "benchmarks.peers.taskiq:broker", "--workers", "1", "--max-async-tasks", str(concurrency),
            "--max-prefetch", str(concurrency), "--log-level", "ERROR",
        )  # fmt: skip


SUBJECT = TaskiqSubject
