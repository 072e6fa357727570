"""Moments shifted by seconds, held within the years that a date can name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from treadle.core.policies.limits import FAR_FUTURE


def later(now: datetime, seconds: float) -> datetime:
    """`seconds` after now, or the last moment of the year 9999."""
    if seconds == 0:
        return now
    try:
        return now + timedelta(seconds=seconds)
    except OverflowError:
        return FAR_FUTURE


def earlier(now: datetime, seconds: float) -> datetime | None:
    """`seconds` before now; None where that is before the year 1, so that nothing can be that old."""
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return None


def in_utc(moment: datetime) -> datetime:
    """The moment in UTC, unchanged where it is so already."""
    if moment.tzinfo is UTC:
        return moment
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return FAR_FUTURE if moment.year > 1 else datetime.min.replace(tzinfo=UTC)
