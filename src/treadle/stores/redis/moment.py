"""Moments and durations as the scripts have them: whole microseconds as text (see scripts/include/moment.lua)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

YEAR_ONE = datetime(1, 1, 1, tzinfo=UTC)
LAST = 315_537_897_599_999_999  # the last microsecond of the year 9999, counted from the year 1
NEVER = "0" * 18
_MICROSECOND = timedelta(microseconds=1)
_LONGEST = 400_000_000_000.0  # seconds: more than all the years that a date can name


def moment(when: datetime) -> str:
    """Microseconds since the year 1 in 18 digits: text that sorts by time and loses nothing."""
    return f"{(when - YEAR_ONE) // _MICROSECOND:018d}"


def present(now: datetime | None) -> str:
    """The now of a call; empty lets the server's clock decide (S9)."""
    return "" if now is None else moment(now)


@lru_cache(maxsize=4096)  # the jobs of one batch share most of their moments
def at(text: str) -> datetime | None:
    """What `moment` gave; zeros are no moment."""
    return None if text == NEVER else YEAR_ONE + timedelta(microseconds=int(text))


def surely_at(text: str) -> datetime:
    """The same for a moment that is always there."""
    return at(text) or YEAR_ONE


def span(seconds: float) -> str:
    """A duration as whole microseconds; the scripts stop at the year 9999."""
    if seconds <= 0:
        return "0"
    return str(timedelta(seconds=min(seconds, _LONGEST)) // _MICROSECOND)


def later(now: str, seconds: float) -> str:
    """As `later` in scripts/include/moment.lua."""
    return now if seconds <= 0 else f"{min(int(now) + int(span(seconds)), LAST):018d}"
