"""`treadle.Cron`: an expression in a time zone as a value that answers when (T5 to T8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from treadle.core.cron.description import describe
from treadle.core.cron.expression import Expression, parse
from treadle.core.cron.occurrence import EARLIEST, LATEST, Occurrence, next_occurrence, previous_instant
from treadle.core.cron.zone import zone_of
from treadle.core.errors import InvalidArgument

MAX_COUNT = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class Cron:
    """A cron expression of five fields, or six with the second first (`seconds=True`), read as wall-clock time in `tz`.

    Two are equal if all three are. Raises `InvalidArgument` for an expression that cannot be parsed or never comes true
    (T5, T7), and for a zone that there is not (T8).
    """

    expression: str
    tz: str = "UTC"
    seconds: bool = False
    parsed: Expression = field(init=False, compare=False)
    zone: ZoneInfo = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.seconds, bool):
            raise InvalidArgument(f"seconds must be True or False, not {self.seconds!r}")
        object.__setattr__(self, "parsed", parse(self.expression, seconds=self.seconds))
        object.__setattr__(self, "zone", zone_of(self.tz))

    @classmethod
    def with_seconds(cls, expression: str, tz: str = "UTC") -> Cron:
        """From five or six fields, the value of six: five get `0 ` in front (F12). Raises as the class does."""
        return cls(parse(expression, seconds=None).six_fields, tz, seconds=True)

    def next(self, after: datetime) -> datetime | None:
        """The first run strictly later than `after`, in UTC; None at the end of the calendar, 29 December 9999.

        Raises `InvalidArgument` for a naive `after`.
        """
        found = next_occurrence(self.parsed, self.zone, _utc(after, "after"))
        return None if found is None else found.at

    def previous(self, before: datetime) -> datetime | None:
        """The last run strictly earlier than `before`, in UTC; None at the beginning of the calendar, in the year 1.

        Raises `InvalidArgument` for a naive `before`.
        """
        return previous_instant(self.parsed, self.zone, _utc(before, "before"))

    def upcoming(self, after: datetime, count: int) -> list[datetime]:
        """The next `count` runs (0 to 10,000) strictly later than `after`, in UTC. Raises `InvalidArgument` like `next`."""
        return [occurrence.at for occurrence in self.occurrences(after, count)]

    def occurrences(self, after: datetime, count: int) -> list[Occurrence]:
        """Like `upcoming`, with what the clock changes did to each: whether it was moved, and what was merged into it."""
        if type(count) is not int or not 0 <= count <= MAX_COUNT:  # True is no count
            raise InvalidArgument(f"count must be a whole number from 0 to {MAX_COUNT:,}, not {count!r}")
        found: list[Occurrence] = []
        instant = _utc(after, "after")
        while len(found) < count and (occurrence := next_occurrence(self.parsed, self.zone, instant)) is not None:
            found.append(occurrence)
            instant = occurrence.at
        return found

    def describe(self) -> str:
        """When it runs, as a sentence in English (without the zone)."""
        return describe(self.parsed)

    def __repr__(self) -> str:
        return f"Cron({self.expression!r}, tz={self.tz!r}{', seconds=True' * self.seconds})"


def _utc(moment: datetime, name: str) -> datetime:
    """The moment in UTC, and within what UTC can express."""
    if not isinstance(moment, datetime):
        raise InvalidArgument(f"{name} must be a datetime, not {type(moment).__name__}")
    if moment.utcoffset() is None:
        raise InvalidArgument(f"{name} must be an aware datetime, not {moment.isoformat()} without a time zone: add tzinfo=UTC")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return EARLIEST if moment.year == EARLIEST.year else LATEST
