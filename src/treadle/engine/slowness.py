"""Slowness: the log's one line about each job that runs longer than `warn_after` (E18)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from treadle.engine.execution import Execution
from treadle.engine.fields import fields


class Slowness:
    """Looks at what runs now and then, so that a job costs no timer. It stops nothing."""

    def __init__(
        self,
        warn_after: float | None,
        running: Mapping[str, Execution],
        loop: asyncio.AbstractEventLoop,
        logger: logging.Logger,
    ) -> None:
        self._warn_after = warn_after
        self._running = running
        self._loop = loop
        self._logger = logger
        self._next_look: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Look after what runs, until nothing does."""
        if self._next_look is None and self._warn_after is not None:
            self._next_look = self._loop.call_later(self._warn_after, self._look, self._warn_after)

    def end(self) -> None:
        """Look no more; safe twice."""
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    def _look(self, warn_after: float) -> None:
        now = self._loop.time()
        for execution in self._running.values():
            if not execution.warned and now - execution.started >= warn_after:
                execution.warned = True
                with suppress(Exception):  # a log filter of the application's own may raise, and must not end the looks
                    self._logger.warning(
                        "%s %s has been running for %.1f s (warn_after is %g s); it is not stopped",
                        execution.job.name,
                        execution.job.id,
                        now - execution.started,
                        warn_after,
                        extra=fields(execution.job),
                    )
        self._next_look = self._loop.call_later(min(1.0, warn_after / 4), self._look, warn_after) if self._running else None
