"""Schedules as values: what enqueues jobs by time (T)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from treadle.core.job import Key, NewJob

if TYPE_CHECKING:
    from treadle.core.cron import Cron

INTERVAL_PREFIX = "every:"
CRON_PREFIX = "cron:"


@dataclass(frozen=True, slots=True)
class Interval:
    """Run again `seconds` after the last run ended; `job` is the template of each copy (T1, T2)."""

    seconds: float
    job: NewJob

    @classmethod
    def of(cls, seconds: float, job: NewJob) -> Interval:
        """The interval that runs `job` over and over, with the key that keeps a second copy away (T4)."""
        schedule = INTERVAL_PREFIX + job.name
        return cls(seconds, replace(job, schedule=schedule, key=Key("schedule", schedule)))

    @property
    def schedule(self) -> str:
        """The schedule's name, as its jobs carry it."""
        return INTERVAL_PREFIX + self.job.name

    def copy(self, id: str, delay: float) -> NewJob:
        """A new copy, due `delay` seconds after the store's now."""
        return replace(self.job, id=id, delay=delay)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A stored cron schedule: a name, when it fires, and the job that each firing enqueues (T5 to T14).

    `job` is the template, its payload frozen (T13). `next_at` is a stored instant (T9), None where there is none any more.
    `last_at` is when it last fired or was run by hand, None before. `revision` goes up by one with each change, from 1; a
    firing is a change too, so that nobody who read the schedule before it can put it back and have it fire again (T12).
    """

    name: str
    expression: str
    tz: str
    seconds: bool
    job: NewJob
    next_at: datetime | None
    last_at: datetime | None = None
    paused: bool = False
    revision: int = 0

    @classmethod
    def of(cls, name: str, cron: Cron, job: NewJob) -> Schedule:
        """A schedule not yet stored, its template carrying the key that keeps a second unfinished firing away (T11)."""
        label = CRON_PREFIX + name
        template = replace(job, id="", schedule=label, key=Key("schedule", label))
        return cls(name, cron.expression, cron.tz, cron.seconds, template, next_at=None)

    @property
    def cron(self) -> Cron:
        """The expression in its zone, as a value."""
        from treadle.core.cron import Cron  # loads the zone data, which a program without cron needs not

        return Cron(self.expression, self.tz, self.seconds)

    def due_like(self, other: Schedule) -> bool:
        """Whether the other one has the same times."""
        return (self.expression, self.tz, self.seconds) == (other.expression, other.tz, other.seconds)

    def fires_like(self, other: Schedule) -> bool:
        """Whether the other one means the same: the same times and the same job."""
        return self.due_like(other) and self.job == other.job

    def firing(self, id: str) -> NewJob:
        """The job of one firing, due at once."""
        return replace(self.job, id=id)
