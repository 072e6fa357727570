"""Occurrences: the instants at which an expression comes true in a time zone (T6, T8).

Each moment of the expression on the wall clock belongs to one instant: the first at which the clock shows it or, where
the clock skips it, a later time. Instants keep the order of their moments, so the next one after an instant is that of
the first moment beyond the furthest the clock has come by then. That one sentence is the whole of T8: a skipped moment
comes at the end of its gap, all of a gap at the same instant, and a repeated one the first time only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from treadle.core.cron.expression import Expression
from treadle.core.cron.moment import first_after, last_until
from treadle.core.cron.zone import high_water, instant_of

# Answers lie between these: no zone's offset can carry them out of the years 1 to 9999 that Python counts.
EARLIEST = datetime(1, 1, 3, tzinfo=UTC)
LATEST = datetime(9999, 12, 29, tzinfo=UTC)

_TICK = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_LATEST_MOMENT = (LATEST + _DAY).replace(tzinfo=None)
_EARLIEST_MOMENT = (EARLIEST - _DAY).replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One run: its instant in UTC, and the moments on the zone's wall clock that it stands for, from `first` to `last`.

    They are one and the same unless the clocks skip: then it is `moved`, and `merged` if more than one moment fell
    into the gap, or one into the gap and one on its end.
    """

    at: datetime
    first: datetime
    last: datetime
    moved: bool

    @property
    def merged(self) -> bool:
        """Whether this one run stands for several moments."""
        return self.first != self.last


def next_occurrence(expression: Expression, zone: ZoneInfo, after: datetime) -> Occurrence | None:
    """The first occurrence strictly later than `after` (aware); None if there is none before `LATEST`."""
    moment = first_after(expression, high_water(max(after, EARLIEST), zone)) if after < LATEST else None
    if moment is None or moment > _LATEST_MOMENT:
        return None
    at = instant_of(moment, zone)
    return _occurrence(expression, zone, at, moment) if at < LATEST else None


def previous_instant(expression: Expression, zone: ZoneInfo, before: datetime) -> datetime | None:
    """The instant of the last occurrence strictly earlier than `before` (aware); None if there is none after `EARLIEST`."""
    moment = last_until(expression, high_water(min(before, LATEST) - _TICK, zone)) if before > EARLIEST else None
    if moment is None or moment < _EARLIEST_MOMENT:
        return None
    at = instant_of(moment, zone)
    return at if at > EARLIEST else None


def _occurrence(expression: Expression, zone: ZoneInfo, at: datetime, first: datetime) -> Occurrence:
    shows = at.astimezone(zone).replace(tzinfo=None, fold=0)
    if shows == first:
        return Occurrence(at, first, first, moved=False)
    return Occurrence(at, first, last_until(expression, shows) or first, moved=True)
