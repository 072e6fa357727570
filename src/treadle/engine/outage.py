"""An outage: what fails again and again is told once, tried again with growing pauses, and its return is told."""

from __future__ import annotations

import logging
import random
import time

from treadle.core.errors import StoreError


class Outage:
    """Counts failures in a row, says how long to pause, and keeps the log short.

    They are mostly those of a store that cannot be reached. A fault that nobody foresaw may last as long, and must neither
    turn the loop into a busy one nor fill the log; it is told with its traceback.
    """

    FIRST_PAUSE, LONGEST_PAUSE, LOG_EVERY = 0.1, 2.0, 30.0

    def __init__(self, what: str, logger: logging.Logger) -> None:
        self._what = what
        self._logger = logger
        self._failures = 0
        self._since = 0.0
        self._logged = 0.0
        self._kind: type[Exception] | None = None

    def failed(self, error: Exception) -> float:
        """Take note of a failure; answers the seconds to pause before the next try."""
        now = time.monotonic()
        if not self._failures:
            self._since = now
        if not self._failures or type(error) is not self._kind or now - self._logged >= self.LOG_EVERY:
            self._logged = now
            self._tell(error)
        self._kind = type(error)
        pause: float = min(self.FIRST_PAUSE * 2.0 ** min(self._failures, 10), self.LONGEST_PAUSE)
        self._failures += 1
        return pause * (0.75 + random.random() / 2)  # noqa: S311  spreads the workers, guards nothing

    def over(self) -> None:
        """Take note of a success."""
        if self._failures:
            self._failures = 0
            seconds = time.monotonic() - self._since
            if self._kind is not None and issubclass(self._kind, StoreError):
                self._logger.warning("%s: the store is back after %.1f s", self._what, seconds)
            else:
                self._logger.warning("%s: it works again after %.1f s", self._what, seconds)

    def _tell(self, error: Exception) -> None:
        if isinstance(error, StoreError):
            self._logger.warning("%s: the store failed, trying again: %s", self._what, error)
        else:
            self._logger.error("%s failed, trying again", self._what, exc_info=error)
