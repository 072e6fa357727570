"""A gatherer: callers at the same time share one write; nothing ever waits for a timer (E27)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Gatherer(Generic[Item, Answer]):
    """Hands items to `write` in batches: what comes while a write is under way goes into the next one."""

    def __init__(
        self, write: Callable[[list[Item]], Awaitable[list[Answer]]], weight: Callable[[Item], int], limit: int, load: int
    ) -> None:
        self._write = write
        self._weight = weight
        self._limit = limit
        self._load = load
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._writing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def writing(self) -> bool:
        """Whether a write is under way, or about to be: what is added now goes into a later one."""
        return self._writing

    async def add(self, item: Item) -> Answer:
        """Have the item written; answers what `write` answered for it, or raises what it raised."""
        loop = asyncio.get_running_loop()
        if not self._writing:
            # A lone caller writes by itself, without a task's turn of the loop; who comes meanwhile is gathered.
            self._writing = True
            try:
                return (await self._write([item]))[0]
            finally:
                self._writing = False
                self._go_on(loop)
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((item, answer))
        return await answer

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._waiting and not loop.is_closed():
            self._writing = True
            self._task = loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch = self._next_batch()
                if not batch:
                    return
                try:
                    answers = await self._write([item for item, _ in batch])
                except Exception as error:
                    for _, answer in batch:
                        if not answer.done():
                            answer.set_exception(error)
                else:
                    for (_, answer), result in zip(batch, answers, strict=True):
                        if not answer.done():
                            answer.set_result(result)
        finally:
            self._task = None
            self._writing = False
            for _, answer in self._waiting:  # only after a cancellation, as at the end of the loop
                answer.cancel()
            self._waiting.clear()

    def _next_batch(self) -> list[tuple[Item, asyncio.Future[Answer]]]:
        batch: list[tuple[Item, asyncio.Future[Answer]]] = []
        load = 0
        while self._waiting and len(batch) < self._limit:
            if self._waiting[0][1].done():
                self._waiting.popleft()  # its caller was cancelled before any write of it began
                continue
            load += self._weight(self._waiting[0][0])
            if batch and load > self._load:
                break
            batch.append(self._waiting.popleft())
        return batch
