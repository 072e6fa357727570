"""The times of day of an expression in English: "At 09:00", "Every 5 minutes from 09:00 to 17:55"."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.cron.wording import fills, in_a_row, joined, listed, ordinal, rhythm

_FEW = 3
_SEVERAL = 6


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of time, the values that it takes, rising, and how many there are in the next larger one."""

    name: str
    values: tuple[int, ...]
    count: int

    @property
    def full(self) -> bool:
        """Whether it takes every value."""
        return len(self.values) == self.count

    @property
    def numbers(self) -> str:
        """The values by number: "minute 5", "minutes 5 and 10"."""
        return f"{self.name}{'s' * (len(self.values) > 1)} {listed(self.values)}"


def times_in_words(seconds: tuple[int, ...], minutes: tuple[int, ...], hours: tuple[int, ...]) -> str:
    """The times of day: a list if they are few, from-to if they are even, else composed of the units."""
    units = (Unit("second", seconds, 60), Unit("minute", minutes, 60), Unit("hour", hours, 24))
    times = len(seconds) * len(minutes) * len(hours)
    if times > _FEW and (even := _even(units)):
        return even
    if times <= _SEVERAL:
        exact = seconds != (0,)
        return f"At {joined([_clock(h, m, s, exact) for h in hours for m in minutes for s in seconds])}"
    return _composed(units)


def _even(units: tuple[Unit, ...]) -> str | None:
    """The words for times that follow each other in even steps from the first of the day to the last; None if they do not."""
    inner = next(place for place, unit in enumerate(units) if len(unit.values) > 1)
    unit, outer = units[inner], units[inner + 1 :]
    full_circle = fills(unit.values, unit.count)
    if all(len(larger.values) == 1 for larger in outer):
        step = full_circle or rhythm(unit.values)
    else:
        step = full_circle if _unbroken(outer) else None
    if step is None:
        return None
    every = f"Every {unit.name}" if step == 1 else f"Every {step} {unit.name}s"
    all_day = full_circle is not None and all(larger.full for larger in outer)
    from_zero = all(smaller.values == (0,) for smaller in units[:inner])
    if all_day and from_zero:
        return every
    if all_day and step == 1:
        return None  # "At minute 15 of every hour" says it better than "Every hour from 00:15 to 23:15"
    exact = units[0].values != (0,)
    second, minute, hour = (unit.values for unit in units)
    first, last = (_clock(hour[end], minute[end], second[end], exact) for end in (0, -1))
    return f"{every} from {first} to {last}"


def _unbroken(outer: tuple[Unit, ...]) -> bool:
    """Whether the units, the larger ones last, make up one stretch of the day without a break."""
    smaller, largest = outer[:-1], outer[-1]
    if all(unit.full for unit in smaller):
        return in_a_row(largest.values)
    return len(largest.values) == 1 and all(in_a_row(unit.values) for unit in smaller)


def _composed(units: tuple[Unit, ...]) -> str:
    """The words for any times: the smallest unit, "of" the next, "of" the largest."""
    smallest, *larger = units if units[0].values != (0,) else units[1:]
    words = [_lead(smallest)]
    covered = fills(smallest.values, smallest.count) is not None
    for unit in larger:
        if not (covered and unit.full):
            words.append(_part(unit))
        covered = unit.full
    return " of ".join(words)


def _lead(unit: Unit) -> str:
    """The unit at the head of the sentence: "Every 5 minutes", "Every 7 minutes from minute 0 to 56", "At minutes 1 and 9"."""
    full_circle = fills(unit.values, unit.count)
    step = full_circle or rhythm(unit.values)
    if step is None:
        return f"At {unit.numbers}"
    every = f"Every {unit.name}" if step == 1 else f"Every {step} {unit.name}s"
    return every if full_circle else f"{every} from {unit.name} {unit.values[0]} to {unit.values[-1]}"


def _part(unit: Unit) -> str:
    """The unit after "of": "every hour", "every 2nd hour from 1 to 23", "hours 9 and 17"."""
    step = rhythm(unit.values)
    if step is None:
        return unit.numbers
    every = f"every {unit.name}" if step == 1 else f"every {ordinal(step)} {unit.name}"
    return every if unit.full else f"{every} from {unit.values[0]} to {unit.values[-1]}"


def _clock(hour: int, minute: int, second: int, exact: bool) -> str:
    return f"{hour:02}:{minute:02}:{second:02}" if exact else f"{hour:02}:{minute:02}"
