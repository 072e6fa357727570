"""Time as a value: the clock protocol and the one conversion that stores share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@runtime_checkable
class Clock(Protocol):
    """Tells the time. A clock that is handed to `Tasks` rules everything: due times, leases, retries (S2)."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...


def to_micros(moment: datetime) -> int:
    """Whole microseconds since 1970: how the stores that have no time type keep a moment, without loss."""
    return (moment - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The aware UTC moment of `to_micros`."""
    return EPOCH + timedelta(microseconds=micros)
