"""An outage: a store that cannot be reached is told once, tried again with growing pauses, and its return is told."""

from __future__ import annotations

import logging
import random
import time

from treadle.core.errors import StoreError


class Outage:
    """Counts failures in a row, says how long to pause, and keeps the log short."""

    FIRST_PAUSE, LONGEST_PAUSE, LOG_EVERY = 0.1, 2.0, 30.0

    def __init__(self, what: str, logger: logging.Logger) -> None:
        self._what = what
        self._logger = logger
        self._failures = 0
        self._since = 0.0
        self._logged = 0.0

    def failed(self, error: StoreError) -> float:
        """Take note of a failure; answers the seconds to pause before the next try."""
        now = time.monotonic()
        if not self._failures:
            self._since = now
        if not self._failures or now - self._logged >= self.LOG_EVERY:
            self._logged = now
            self._logger.warning("%s: the store failed, trying again: %s", self._what, error)
        pause: float = min(self.FIRST_PAUSE * 2.0 ** min(self._failures, 10), self.LONGEST_PAUSE)
        self._failures += 1
        return pause * (0.75 + random.random() / 2)  # noqa: S311  spreads the workers, guards nothing

    def over(self) -> None:
        """Take note of a success."""
        if self._failures:
            self._logger.warning("%s: the store is back after %.1f s", self._what, time.monotonic() - self._since)
            self._failures = 0
