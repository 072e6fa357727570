"""Schedules as values: what enqueues jobs by time (T)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from treadle.core.job import Key, NewJob

INTERVAL_PREFIX = "every:"


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
