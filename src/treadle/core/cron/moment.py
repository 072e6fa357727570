"""The moments of an expression on the calendar and the clock on the wall, without any time zone (T6).

Both searches cost a few bit operations a month, and at most nine months: none waits longer than for 29 February
across a year such as 2100.
"""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, datetime, timedelta

from treadle.core.cron.expression import Expression
from treadle.core.cron.fields import HOUR, MINUTE, SECOND, highest, lowest

_SECOND = timedelta(seconds=1)


def first_after(expression: Expression, moment: datetime) -> datetime | None:
    """The first moment later than the given one (both naive, whole seconds are answered); None after the year 9999."""
    try:
        start = moment.replace(microsecond=0) + _SECOND
    except OverflowError:
        return None
    day = _day_from(expression, start.year, start.month, start.day)
    if day == (start.year, start.month, start.day):
        clock = _clock_from(expression, start.hour, start.minute, start.second)
        if clock is not None:
            return start.replace(*day, *clock)
        day = _day_from(expression, start.year, start.month, start.day + 1)
    if day is None:
        return None
    return start.replace(*day, *_earliest(expression))


def last_until(expression: Expression, moment: datetime) -> datetime | None:
    """The last moment not later than the given one (both naive); None before the year 1."""
    day = _day_until(expression, moment.year, moment.month, moment.day)
    if day == (moment.year, moment.month, moment.day):
        clock = _clock_until(expression, moment.hour, moment.minute, moment.second)
        if clock is not None:
            return moment.replace(*day, *clock, microsecond=0)
        day = _day_until(expression, moment.year, moment.month, moment.day - 1)
    if day is None:
        return None
    return moment.replace(*day, *_latest(expression), microsecond=0)


def _day_from(expression: Expression, year: int, month: int, day: int) -> tuple[int, int, int] | None:
    """The first day meant, from the given one on, which may be one past the end of its month."""
    while year <= MAXYEAR:
        found = lowest(expression.months, month)
        if found < 0:
            year, month, day = year + 1, 1, 1
            continue
        hit = lowest(expression.days_in(year, found), day if found == month else 1)
        if hit > 0:
            return year, found, hit
        month, day = found + 1, 1
    return None


def _day_until(expression: Expression, year: int, month: int, day: int) -> tuple[int, int, int] | None:
    """The last day meant, up to the given one, which may be the 0th of its month."""
    while year >= MINYEAR:
        found = highest(expression.months, month)
        if found < 1:
            year, month, day = year - 1, 12, 31
            continue
        hit = highest(expression.days_in(year, found), day if found == month else 31)
        if hit > 0:
            return year, found, hit
        month, day = found - 1, 31
    return None


def _clock_from(expression: Expression, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
    """The first time of day not before the given one; None if the day has no more."""
    found = lowest(expression.hours, hour)
    if found == hour:
        later = lowest(expression.minutes, minute)
        if later == minute:
            latest = lowest(expression.seconds, second)
            if latest >= 0:
                return hour, minute, latest
            later = lowest(expression.minutes, minute + 1)
        if later >= 0:
            return hour, later, lowest(expression.seconds, 0)
        found = lowest(expression.hours, hour + 1)
    if found < 0:
        return None
    return found, *_earliest(expression)[1:]


def _clock_until(expression: Expression, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
    """The last time of day not after the given one; None if the day has none so early."""
    found = highest(expression.hours, hour)
    if found == hour:
        earlier = highest(expression.minutes, minute)
        if earlier == minute:
            earliest = highest(expression.seconds, second)
            if earliest >= 0:
                return hour, minute, earliest
            earlier = highest(expression.minutes, minute - 1) if minute else -1
        if earlier >= 0:
            return hour, earlier, highest(expression.seconds, SECOND.top)
        found = highest(expression.hours, hour - 1) if hour else -1
    if found < 0:
        return None
    return found, *_latest(expression)[1:]


def _earliest(expression: Expression) -> tuple[int, int, int]:
    return lowest(expression.hours, 0), lowest(expression.minutes, 0), lowest(expression.seconds, 0)


def _latest(expression: Expression) -> tuple[int, int, int]:
    return highest(expression.hours, HOUR.top), highest(expression.minutes, MINUTE.top), highest(expression.seconds, SECOND.top)
