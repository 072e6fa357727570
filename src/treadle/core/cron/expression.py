"""The cron expression: its text, checked, and the values that each field admits (T5, T6, T7)."""

from __future__ import annotations

import re
from calendar import month_name, monthrange
from dataclasses import dataclass

from treadle.core.cron.fields import DAY, FIVE, HOUR, MINUTE, MONTH, SECOND, SIX, WEEKDAY, each, lowest
from treadle.core.cron.member import Refused, read_field, shown
from treadle.core.cron.wording import joined
from treadle.core.errors import InvalidArgument

MAX_LENGTH = 256

_FORMS = {
    5: "five fields (minute, hour, day of month, month, day of week)",
    6: "six fields (second, minute, hour, day of month, month, day of week)",
}
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_BLANKS = re.compile(r"[ \t]+")
_LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EACH_WEEK = sum(1 << week * 7 for week in range(5))


@dataclass(frozen=True, slots=True)
class Expression:
    """When something is due, by the calendar and the clock on the wall; each set of values is a bitmask.

    `text` is what was written, with single blanks. The weekdays count from Sunday, 0. `any_day` and `any_weekday` say that
    the field is a bare `*`: where neither is, a day is meant if either field admits it (T6).
    """

    text: str
    seconds: int
    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    any_day: bool
    any_weekday: bool

    @property
    def six_fields(self) -> str:
        """The text with its seconds: five fields get `0 ` in front (F12)."""
        return self.text if self.text.count(" ") == len(SIX) - 1 else f"0 {self.text}"

    def days_in(self, year: int, month: int) -> int:
        """The days of that month that are meant, whether the month itself is or not."""
        first, length = monthrange(year, month)
        within = (2 << length) - 2
        if self.any_weekday:
            return self.days & within
        # The set turned so that bit 0 is the weekday of the first, then laid over five weeks, then moved to days from 1.
        shift = (first + 1) % 7
        turned = (self.weekdays >> shift | self.weekdays << (7 - shift)) & 0x7F
        by_weekday = (turned * _EACH_WEEK << 1) & within
        return by_weekday if self.any_day else by_weekday | self.days & within


def parse(text: str, *, seconds: bool | None = False) -> Expression:
    """The expression that `text` means: five fields, or six with the second first where `seconds` is True; None takes both.

    Raises `InvalidArgument`, naming the field, the value and what is allowed, for what is not of T5's grammar, and for
    what never comes true (T7).
    """
    if not isinstance(text, str):
        raise InvalidArgument(f"a cron expression must be text, not {type(text).__name__}")
    try:
        expression = _parse(text, seconds)
        _check_that_it_comes(expression)
    except Refused as reason:
        raise InvalidArgument(f"the cron expression {shown(text)} {reason}") from None
    return expression


def _parse(text: str, seconds: bool | None) -> Expression:
    if len(text) > MAX_LENGTH:
        raise Refused(f"has {len(text):,} characters; at most {MAX_LENGTH} are allowed")
    for character in text:
        if not " " <= character <= "~" and character != "\t":
            raise Refused(f"has the character {character!r}; only printable ASCII, blanks and tabs are allowed")
    form = {False: _FORMS[5], True: _FORMS[6], None: f"{_FORMS[5]}, or six with the second first"}[seconds]
    stripped = text.strip(" \t")
    if stripped.startswith("@"):
        meant = _ALIASES.get(stripped.lower())
        example = f"; for {stripped.lower()} write {'0 ' * (seconds is True)}{meant}" if meant else ""
        raise Refused(f"is an alias, and aliases are not taken: write {form}{example}")
    written = _BLANKS.split(stripped) if stripped else []
    if len(written) not in {False: (5,), True: (6,), None: (5, 6)}[seconds]:
        raise Refused(f"has {len(written)} field{'s' * (len(written) != 1)}; expected are {form}")
    fields = FIVE if len(written) == len(FIVE) else SIX
    values = {field: read_field(field, part) for field, part in zip(fields, written, strict=True)}
    return Expression(
        text=" ".join(written),
        seconds=values.get(SECOND, 1 << 0),
        minutes=values[MINUTE],
        hours=values[HOUR],
        days=values[DAY],
        months=values[MONTH],
        weekdays=values[WEEKDAY],
        any_day=written[-3] == "*",
        any_weekday=written[-1] == "*",
    )


def _check_that_it_comes(expression: Expression) -> None:
    """Refuse what never comes true. That is exact: of what `parse` takes, only a day that no month has never comes.

    Every month has every weekday, every time of day comes (one that the clocks skip is made up after the gap), and
    29 February comes at least once in eight years.
    """
    day = lowest(expression.days, DAY.low)
    months = list(each(expression.months))
    if expression.any_weekday and all(day > _LONGEST[month] for month in months):
        names = joined([month_name[month] for month in months])
        raise Refused(f"never comes true: there is no day {day} in {names}")
