"""The settler: writes what attempts became, gathered while a write is under way and never by a timer (E22, E27)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable

from treadle.core.errors import StoreError
from treadle.core.store import Claim, Ending, JobStore
from treadle.engine.alarm import Alarm
from treadle.engine.clock import EngineClock
from treadle.engine.outage import Outage

BATCH = 1000


class Settler:
    """Takes endings without blocking and writes them in order, however long the store is away.

    An ending whose claim no longer holds changes nothing, and is told in the log.
    """

    def __init__(
        self, store: JobStore, clock: EngineClock, logger: logging.Logger, on_written: Callable[[Iterable[Ending]], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._logger = logger
        self._on_written = on_written
        self._waiting: deque[Ending] = deque()
        self._writing = 0  # how many endings the write under way has taken up
        self._outage = Outage("results", logger)
        self._alarm = Alarm()
        self._task: asyncio.Task[None] | None = None

    @property
    def backlog(self) -> int:
        """How many endings are not yet taken up by a write."""
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether everything is written."""
        return self._task is None

    def add(self, ending: Ending) -> None:
        """Have the ending written."""
        self._waiting.append(ending)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write(), name="treadle-settler")

    async def flush(self, seconds: float) -> int:
        """Wait until everything is written, at most so long; answers how many endings were not."""
        if self._task is not None:
            task = self._task
            self._alarm.ring()
            await asyncio.wait({task}, timeout=seconds)
            if not task.done():
                left = self._writing + self.backlog
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                return left
        return 0

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                self._writing = len(batch)
                await self._apply(batch)
        except asyncio.CancelledError:
            self._on_written(self._waiting)  # given up: a lease that is renewed for ever would keep its job from everybody
            raise
        finally:
            self._writing = 0
            self._task = None

    async def _apply(self, batch: list[Ending]) -> None:
        held: set[Claim] | None = None
        try:
            while held is None:
                try:
                    held = await self._store.finish(batch, now=self._clock.for_store())
                except StoreError as error:
                    await self._alarm.wait(self._outage.failed(error))
        except Exception:
            self._logger.exception("%d result(s) could not be written; the jobs are left to their leases", len(batch))
        else:
            self._outage.over()
            if len(held) < len(batch):
                self._tell_late([ending.claim for ending in batch if ending.claim not in held])
        finally:
            self._on_written(batch)  # in any case: a lease that is renewed for ever would keep its job from everybody

    def _tell_late(self, claims: list[Claim]) -> None:
        self._logger.warning(
            "%d late result(s) dropped, since the jobs are no longer held here: %s",
            len(claims),
            ", ".join(claim.id for claim in claims[:5]) + (" ..." if len(claims) > 5 else ""),
        )
