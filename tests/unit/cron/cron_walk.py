"""The oracle of the cron tests: rules T5 to T8 read literally, by walking over every instant. It imports nothing of treadle.

A clock is walked instant by instant. Each wall-clock moment that the clock shows for the first time is due then; each moment
that it jumps over is due at the first instant after the jump; a moment that was shown before is not due again.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

MINUTE = timedelta(minutes=1)
NAMES = {
    4: ["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    5: ["sun", "mon", "tue", "wed", "thu", "fri", "sat", ""],
}
LIMITS = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]


class Matcher:
    """Whether a wall-clock moment is one of the expression's."""

    def __init__(self, text: str) -> None:
        parts = text.lower().split()
        self.parts = parts if len(parts) == 6 else ["0", *parts]
        self.sets = [self._values(place) for place in range(6)]
        self.days: dict[date, bool] = {}

    def _number(self, place: int, word: str) -> int:
        return int(word) if word.isdigit() else NAMES[place].index(word)

    def _values(self, place: int) -> frozenset[int]:
        values: set[int] = set()
        for member in self.parts[place].split(","):
            span, _, step = member.partition("/")
            low, _, high = span.partition("-")
            first = LIMITS[place][0] if low == "*" else self._number(place, low)
            last = LIMITS[place][1] if low == "*" else self._number(place, high or low)
            values.update(range(first, last + 1, int(step or 1)))
        return frozenset(values)

    def day(self, day: date) -> bool:
        if day not in self.days:
            by_day = day.day in self.sets[3]
            weekday = day.isoweekday() % 7
            by_weekday = weekday in self.sets[5] or (weekday == 0 and 7 in self.sets[5])
            both = self.parts[3] != "*" and self.parts[5] != "*"
            self.days[day] = day.month in self.sets[4] and ((by_day or by_weekday) if both else (by_day and by_weekday))
        return self.days[day]

    def __call__(self, moment: datetime) -> bool:
        return (
            moment.minute in self.sets[1]
            and moment.hour in self.sets[2]
            and moment.second in self.sets[0]
            and self.day(moment.date())
        )

    def times(self) -> list[tuple[int, int, int]]:
        seconds, minutes, hours = (sorted(values) for values in self.sets[:3])
        return [(h, m, s) for h in hours for m in minutes for s in seconds]


class Walk:
    """What is due at each instant from `start` to `end` (both in UTC), a `step` apart."""

    def __init__(self, zone: ZoneInfo, start: datetime, end: datetime, warm_up: timedelta, step: timedelta = MINUTE) -> None:
        self.start, self.end = start, end
        self.due: list[tuple[datetime, list[datetime]]] = []
        instant = start - warm_up
        shown = {instant.astimezone(zone).replace(tzinfo=None, fold=0)}
        furthest = max(shown)
        while instant < end:
            instant += step
            wall = instant.astimezone(zone).replace(tzinfo=None, fold=0)
            fresh = []
            while furthest + step < wall:
                furthest += step
                fresh.append(furthest)
            if wall not in shown:
                fresh.append(wall)
            furthest = max(furthest, wall)
            shown.update(fresh)
            if fresh and instant > start:
                self.due.append((instant, fresh))

    def fires(self, matches: Matcher) -> list[tuple[datetime, list[datetime]]]:
        """Each instant at which the expression comes true, with the moments that it stands for."""
        found = ((instant, [moment for moment in fresh if matches(moment)]) for instant, fresh in self.due)
        return [(instant, moments) for instant, moments in found if moments]


def clocks(start: date, end: date) -> tuple[list[datetime], dict[tuple[timedelta, ...], list[str]]]:
    """Every midnight between two dates, and each different clock as its offsets then, with the zones that have it.

    Zones of the same clock are looked at once: 600 names are fewer than 200 clocks since 2000.
    """
    days = [datetime.combine(start, datetime.min.time()) + timedelta(days=count) for count in range((end - start).days)]
    found: dict[tuple[timedelta, ...], list[str]] = {}
    for name in sorted(available_timezones()):
        found.setdefault(tuple(map(ZoneInfo(name).utcoffset, days)), []).append(name)
    return days, found


def changes(start: date, end: date) -> dict[tuple[datetime, timedelta, timedelta], list[str]]:
    """Every clock change between two dates, as (instant, offset before, offset after), with the zones that have it."""
    days, kinds = clocks(start, end)
    found: dict[tuple[datetime, timedelta, timedelta], list[str]] = {}
    for offsets, names in kinds.items():
        for place, (before, after) in enumerate(pairwise(offsets)):
            if before != after:
                change = _exact(ZoneInfo(names[0]), days[place], days[place + 1], after)
                found.setdefault((change, before, after), []).extend(names)
    return found


def _exact(zone: ZoneInfo, low: datetime, high: datetime, after: timedelta) -> datetime:
    # An hour more, since midnight itself may lie in the gap; changes are days apart.
    early, late = low.replace(tzinfo=zone).astimezone(UTC) - timedelta(hours=1), high.replace(tzinfo=zone).astimezone(UTC)
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == after:
            late = middle
        else:
            early = middle
    return late


def any_expression(rng: random.Random, *, seconds: bool = False, near: datetime | None = None) -> str:
    """A valid expression of any shape; with `near` one that likely has a moment within hours of it."""
    hours = sorted({(near + timedelta(hours=shift)).hour for shift in (-2, -1, 0, 1, 2)}) if near else list(range(24))
    fields = [
        _any_field(rng, 1),
        ",".join(map(str, rng.sample(hours, rng.randint(1, len(hours))))) if near else _any_field(rng, 2),
    ]
    if rng.random() < 0.25:
        fields[1] = "*"
    if rng.random() < 0.5 and near:
        fields += ["*", "*", "*"]
    else:
        fields += [_any_field(rng, place) if rng.random() < 0.6 else "*" for place in (3, 4, 5)]
    if seconds:
        fields.insert(0, _any_field(rng, 0))
    return " ".join(fields)


def _any_field(rng: random.Random, place: int) -> str:
    return ",".join(_any_member(rng, place) for _ in range(rng.choice((1, 1, 1, 2, 3, 6))))


def _any_member(rng: random.Random, place: int) -> str:
    low, high = LIMITS[place]
    count = high - low + 1 - (place == 5)
    first = rng.randint(low, high)
    last = rng.randint(first, high)
    word = str(first)
    if place in NAMES and NAMES[place][first] and rng.random() < 0.3:
        word = rng.choice((str.upper, str.lower, str.title))(NAMES[place][first])
    match rng.randrange(6):
        case 0:
            return f"*/{rng.randint(1, count)}"
        case 1:
            return f"{word}-{last}"
        case 2:
            return f"{word}-{last}/{rng.randint(1, count)}"
        case 3:
            return rng.choice(("*", word))
        case _:
            return word
