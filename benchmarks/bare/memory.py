"""No store at all: an asyncio loop that starts one task a job, a semaphore holding how many run at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads


async def noop(load: Any) -> None:
    handle(load)


class Loop(Subject):
    note = "no library and no store: a deque, a semaphore, a task a job"

    async def reset(self) -> None:
        self._jobs: deque[Any] = deque()
        self._arrived = asyncio.Event()
        self._done = 0
        self._started = 0
        self._runner: asyncio.Task[None] | None = None

    async def one(self, kind: str, number: int) -> None:
        self._jobs.append(payload(kind, number))
        self._arrived.set()

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            self._jobs.extend(call)
        self._arrived.set()

    async def left(self) -> int:
        return self._started - self._done

    async def start_here(self, concurrency: int) -> None:
        self._runner = asyncio.create_task(self._run(asyncio.Semaphore(concurrency)))

    async def stop_here(self) -> None:
        if self._runner is not None:
            self._runner.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._runner

    async def _run(self, slots: asyncio.Semaphore) -> None:
        tasks = set()

        async def attempt(load: Any) -> None:
            try:
                await noop(load)
            except Exception:
                pass
            finally:
                self._done += 1
                slots.release()

        while True:
            while self._jobs:
                await slots.acquire()
                self._started += 1
                task = asyncio.create_task(attempt(self._jobs.popleft()))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            self._arrived.clear()
            await self._arrived.wait()


SUBJECT = Loop
