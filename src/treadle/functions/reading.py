"""A reading: something in the store that is asked for all the time, and read about once a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from treadle.core.errors import StoreError, StoreUnavailable
from treadle.engine.clock import EngineClock
from treadle.engine.outage import Outage

FRESH = 1.0
SPACING = 0.25
STALE = 60.0
PATIENCE = 2.0

T = TypeVar("T")


class Reading(Generic[T]):
    """What `read` answers, which is never None. Everybody who asks at the same time shares one read, in one event loop.

    A value serves for `FRESH` seconds, counted from the beginning of its read. No read begins sooner than `SPACING` seconds
    after the one before. While the store is away, or silent for `PATIENCE` seconds, the last value serves for `stale`
    seconds, which is logged; where several have the same `outage`, once for all of them.
    """

    def __init__(
        self,
        what: str,
        read: Callable[[], Awaitable[T]],
        clock: EngineClock,
        logger: logging.Logger,
        stale: float = STALE,
        outage: Outage | None = None,
    ) -> None:
        self._what = what
        self._read = read
        self._clock = clock
        self._stale = stale
        self._outage = outage or Outage(what, logger)
        self._value: T | None = None
        self._read_at = 0.0
        self._begun = 0  # reads so far, and which of them gave the value
        self._answered = 0
        self._begun_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._error: Exception | None = None

    def fresh(self) -> T | None:
        """The value, if it needs no read now: the quick way for those who ask a thousand times a second."""
        return self._value if self._value is not None and self._age() < FRESH else None

    @property
    def last(self) -> T | None:
        """The value that was read last, however long ago; None before the first."""
        return self._value

    @property
    def under_way(self) -> bool:
        """Whether a read is under way, which somebody may be waiting for."""
        return self._task is not None

    async def value(self) -> T:
        """The value. Raises what the read raised, a `StoreError` only where there is no last value that still serves."""
        fresh = self.fresh()
        if fresh is not None:
            return fresh
        task = self._running()
        served = self._serving()
        if served is None:
            await asyncio.wait({task})  # the store has time limits of its own
        elif self._error is None:
            await self._wait_a_while(task)
        # Else the store is known to be away: nobody waits for the read that looks whether it is back.
        if self._error is not None and not isinstance(self._error, StoreError):
            raise self._error.with_traceback(None)  # shared: else each raising would add to it
        served = self._serving()
        if served is None:
            error = self._error or StoreUnavailable(f"{self._what} could not be read: the store does not answer")
            raise error.with_traceback(None)
        return served

    async def newer(self) -> T:
        """A value whose read begins after this call, however fresh the last one is. Raises what that read raised."""
        asked = self._begun
        while self._answered <= asked:
            await asyncio.wait({self._running()})
            if self._error is not None and self._begun > asked:
                raise self._error.with_traceback(None)
        assert self._value is not None
        return self._value

    def _age(self) -> float:
        return self._clock.seconds() - self._read_at

    def _serving(self) -> T | None:
        return self._value if self._value is not None and self._age() < self._stale else None

    def _running(self) -> asyncio.Task[None]:
        if self._task is None:
            self._task = asyncio.create_task(self._round(), name="treadle-reading")
        return self._task

    async def _wait_a_while(self, task: asyncio.Task[None]) -> None:
        await asyncio.wait({task}, timeout=PATIENCE)
        if not task.done() and self._error is None:
            self._failed(StoreUnavailable(f"no answer for {PATIENCE:g} s"))

    async def _round(self) -> None:
        try:
            if self._begun_at is not None:
                await asyncio.sleep(max(0.0, self._begun_at + SPACING - self._clock.seconds()))
            self._begun += 1
            number, self._begun_at = self._begun, self._clock.seconds()
            value = await self._read()
        except Exception as error:  # it is for those who wait, each of whom raises it
            self._failed(error)
        else:
            self._value, self._read_at, self._answered, self._error = value, self._begun_at, number, None
            self._outage.over()
        finally:
            self._task = None

    def _failed(self, error: Exception) -> None:
        self._error = error
        if isinstance(error, StoreError):
            self._outage.failed(error)
