"""The fields of a cron expression: their names, ranges and words, and sets of their values as bitmasks (T5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `top` is the highest number that may be written, `count` how many different values there are."""

    name: str
    low: int
    top: int
    count: int
    words: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What may be written, for people."""
        numbers = f"{self.low} to {self.top}"
        return f"{numbers} or {self.words[0]} to {self.words[-1]}" if self.words else numbers

    @property
    def full(self) -> int:
        """The set of every value."""
        return ((1 << self.count) - 1) << self.low


SECOND = Field("second", 0, 59, 60)
MINUTE = Field("minute", 0, 59, 60)
HOUR = Field("hour", 0, 23, 24)
DAY = Field("day of month", 1, 31, 31)
MONTH = Field("month", 1, 12, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"))
# Sunday is 0 and 7: eight numbers, seven values, so that a set of weekdays has bits 0 to 6.
WEEKDAY = Field("day of week", 0, 7, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))

FIVE = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
SIX = (SECOND, *FIVE)


def lowest(values: int, at_least: int) -> int:
    """The lowest value of a set that is not below `at_least`; -1 if there is none."""
    above = values >> at_least
    return at_least + (above & -above).bit_length() - 1 if above else -1


def highest(values: int, at_most: int) -> int:
    """The highest value of a set that is not above `at_most` (0 or more); -1 if there is none."""
    return (values & ((2 << at_most) - 1)).bit_length() - 1


def each(values: int) -> Iterator[int]:
    """The values of a set, rising."""
    value = lowest(values, 0)
    while value >= 0:
        yield value
        value = lowest(values, value + 1)
