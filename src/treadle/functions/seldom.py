"""A log for what may happen a thousand times a second, and has to be said now and then."""

from __future__ import annotations

import logging

from treadle.engine.clock import EngineClock

EVERY = 30.0  # seconds


class SeldomLog:
    """Logs each kind of message at most every `EVERY` seconds.

    Unlike an `Outage` it does not tell when all is well again: of what happens to some calls and not to others, it would tell
    so after each of those.
    """

    def __init__(self, logger: logging.Logger, clock: EngineClock | None = None) -> None:
        self._logger = logger
        self._clock = clock or EngineClock()
        self._told: dict[str, float] = {}

    def warning(self, message: str, *values: object) -> None:
        """Log a warning, unless one of this `message`, whatever its values, was logged a short while ago."""
        now = self._clock.seconds()
        if now - self._told.get(message, float("-inf")) >= EVERY:
            self._told[message] = now
            self._logger.warning(message, *values)
