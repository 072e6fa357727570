"""Moments and spans as the tables hold them: whole microseconds."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from treadle.core.clock import to_micros

_MICROSECOND = timedelta(microseconds=1)
_LAST = 253_402_300_799_999_999  # the end of the year 9999, beyond which no datetime goes


def present(now: datetime | None) -> int:
    """The moment given, or else what this machine's clock says: the store's own now (S9)."""
    return time.time_ns() // 1000 if now is None else to_micros(now)


def span(seconds: float) -> int:
    """Seconds as whole microseconds, rounded as timedelta rounds."""
    return timedelta(seconds=seconds) // _MICROSECOND if seconds else 0


def later(now: int, seconds: float) -> int:
    """The moment so many seconds after `now`, at most the end of the year 9999."""
    return min(now + span(seconds), _LAST)
