"""A service: a background duty with start, stop and run_once, all of the same shape."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod

from treadle.engine.alarm import Alarm
from treadle.engine.clock import EngineClock
from treadle.engine.outage import Outage

PATIENCE = 5.0


class Service(ABC):
    """A duty repeated every `interval` seconds, and whenever an injected clock is moved.

    `stop` waits for the round under way, at most `PATIENCE` seconds; it is safe twice, and before `start`.
    """

    def __init__(self, interval: float, clock: EngineClock, logger: logging.Logger) -> None:
        self.interval = interval
        self._clock = clock
        self._logger = logger
        self._task: asyncio.Task[None] | None = None
        self._alarm: Alarm | None = None
        self._stopping = False

    @abstractmethod
    async def run_once(self) -> None:
        """Do the duty once."""

    def start(self) -> None:
        """Begin the rounds in the running loop; safe twice."""
        if self._task is None:
            self._stopping = False
            self._alarm = Alarm()
            self._task = asyncio.create_task(self._rounds(self._alarm), name=f"treadle-{type(self).__name__.lower()}")

    def wake(self) -> None:
        """Let the next round begin now."""
        if self._alarm is not None:
            self._alarm.ring()

    async def stop(self) -> None:
        """End the rounds."""
        task, self._task = self._task, None
        if task is not None:
            self._stopping = True
            self.wake()
            try:
                await asyncio.wait({task}, timeout=PATIENCE)
            finally:
                task.cancel()  # a store that never answers must not hold up the stop
                await asyncio.gather(task, return_exceptions=True)

    async def _rounds(self, alarm: Alarm) -> None:
        outage = Outage(type(self).__name__.lower(), self._logger)
        unsubscribe = self._clock.on_move(alarm.ring)
        try:
            while not self._stopping:
                pause: float | None = None
                try:
                    await self.run_once()
                    outage.over()
                except Exception as error:
                    pause = outage.failed(error)
                if pause is None:
                    pause = self.interval  # after the round, which may have set it
                if not self._stopping:
                    await alarm.wait(pause)
        finally:
            unsubscribe()
