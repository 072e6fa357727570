"""Enqueueing jobs with keys where a key may have to be waited for: whoever waits is kept apart from everybody else (E10)."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from treadle.core.job import Enqueued, Key, NewJob
from treadle.engine.gatherer import Gatherer

Write: TypeAlias = Callable[[Sequence[NewJob]], Awaitable[list[Enqueued]]]
Try: TypeAlias = Callable[[Sequence[NewJob]], Awaitable[list[Enqueued] | None]]


class Apart:
    """Shares writes that wait for nobody, and lets each key that is held be waited for by itself.

    A shared write that waited would keep all its callers waiting for one of their keys. Worse, whoever holds that key may
    be one of them, and wait for another job of the write: a deadlock that no database can see. `write` may wait, and
    `attempt` answers None instead. At most `at_once` writes may wait, since each of them holds a connection.
    """

    def __init__(self, write: Write, attempt: Try, at_once: int, limit: int, load: int) -> None:
        self._write = write
        self._attempt = attempt
        self._limit, self._load = limit, load
        self._room = asyncio.Semaphore(at_once)
        self._shared = Gatherer(self._tried, _weight, limit, load)
        # A gatherer lives as long as somebody waits for it.
        self._by_key: weakref.WeakValueDictionary[tuple[str, Key | None], Gatherer[NewJob, Enqueued]]
        self._by_key = weakref.WeakValueDictionary()

    async def one(self, job: NewJob) -> Enqueued:
        """Enqueue a job that has a key."""
        place = (job.name, job.key)
        # One caller, or a few, write alone, which is the least work; what comes while they are at it is shared.
        if place not in self._by_key and (self._shared.writing or self._room.locked()):
            answer = await self._shared.add(job)
            if answer is not None:
                return answer
        gatherer = self._by_key.get(place)
        if gatherer is None:
            gatherer = self._by_key[place] = Gatherer(self.many, _weight, self._limit, self._load)
        return await gatherer.add(job)

    async def many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue jobs in one step, some with keys, waiting for those."""
        async with self._room:
            return await self._write(jobs)

    async def _tried(self, jobs: Sequence[NewJob]) -> list[Enqueued | None]:
        """The answers, None for those whose key is held, which are found by halves."""
        answers = await self._attempt(jobs)
        if answers is not None:
            return [*answers]
        if len(jobs) == 1:
            return [None]
        middle = len(jobs) // 2
        return [*await self._tried(jobs[:middle]), *await self._tried(jobs[middle:])]


def _weight(job: NewJob) -> int:
    return len(job.payload_json)
