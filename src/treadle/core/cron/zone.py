"""Time zones: a name, checked, and where a zone's wall clock stands at an instant and the other way round (T8).

Both ways rest on one fact of the IANA data: the changes of a zone lie days apart, further than any of them repeats or skips,
so that at most one bears on an answer. A test holds the data to it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from treadle.core.cron.member import shown
from treadle.core.errors import InvalidArgument

_SECOND = timedelta(seconds=1)
_NAME = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}")
# Files beside the zones that are no IANA names: what they mean differs from machine to machine, or counts leap seconds.
_FOREIGN = re.compile(r"(posix|right)/.*|localtime|posixrules")


def zone_of(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises `InvalidArgument` where there is none of that name (T8)."""
    if not isinstance(name, str):
        raise InvalidArgument(f"a time zone must be an IANA name such as 'Europe/Berlin', not {type(name).__name__}")
    if _NAME.fullmatch(name) and not _FOREIGN.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass  # no such file; a file that is no zone; a folder: to the caller all are the same
    raise InvalidArgument(f"there is no time zone {shown(name)}; {_advice(name)}")


def high_water(instant: datetime, zone: ZoneInfo) -> datetime:
    """The furthest that the zone's wall clock has come by the instant: every moment up to it has been, or was skipped.

    It is what the clock shows, except where the clock has been set back and shows a time for the second time: then it
    is the last second before it was set back.
    """
    local = instant.astimezone(zone)
    if local.fold:
        change = _change(local.replace(fold=0).astimezone(UTC), instant, zone)
        local = (change - _SECOND).astimezone(zone)
    return local.replace(tzinfo=None, fold=0)


def instant_of(moment: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which the zone's wall clock shows the moment or, where it skips it, a later one."""
    instant = moment.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == moment:
        return instant
    # In a gap, Python reads fold=1 with the offset after it, which leads to before it, and fold=0 the other way round.
    return _change(moment.replace(tzinfo=zone, fold=1).astimezone(UTC), instant, zone)


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first instant of the offset that holds at `after`, while another one holds at `before`; by halving."""
    before, low = before.replace(microsecond=0), 0
    high = -((before - after) // _SECOND)  # rounded up
    offset = after.astimezone(zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if (before + middle * _SECOND).astimezone(zone).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return before + high * _SECOND


def _advice(name: str) -> str:
    """What to write instead: the name in its right case if that is all that is wrong."""
    if len(name) <= 64:
        for known in sorted(available_timezones()):
            if known.lower() == name.lower():
                return f"did you mean {known!r}?"
    return "IANA names such as 'Europe/Berlin' or 'UTC' are allowed"
