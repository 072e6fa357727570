"""arq on Redis."""

from __future__ import annotations

import asyncio
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from benchmarks.load import handle, payload
from benchmarks.subject import Subject


async def noop(context: Any, load: Any) -> None:
    handle(load)


class ArqSubject(Subject):
    note = "keep_result=0; poll_delay 0.01 s (default 0.5)"
    packages = ("arq", "redis", "hiredis")

    @property
    def _settings(self) -> RedisSettings:
        return RedisSettings.from_dsn(self.url)

    async def open(self) -> None:
        self.redis = await create_pool(self._settings)

    async def close(self) -> None:
        await self.redis.aclose()

    async def one(self, kind: str, number: int) -> None:
        await self.redis.enqueue_job("noop", payload(kind, number))

    async def fill(self, kind: str, jobs: int) -> None:
        for start in range(0, jobs, 50):
            await asyncio.gather(*(self.one(kind, number) for number in range(start, min(start + 50, jobs))))

    async def left(self) -> int:
        return int(await self.redis.zcard("arq:queue"))

    def work(self, concurrency: int) -> None:
        asyncio.run(self._work(concurrency))

    async def _work(self, concurrency: int) -> None:
        await Worker(
            [func(noop, name="noop", keep_result=0)],
            redis_settings=self._settings,
            max_jobs=concurrency,
            poll_delay=0.01,
            handle_signals=False,
        ).async_run()


SUBJECT = ArqSubject
