"""What the store remembers of intervals: the last registration, and when its copy is or was due (T1 to T3)."""

from __future__ import annotations

from datetime import datetime

from treadle.core.job import Job
from treadle.core.schedule import Interval


class Intervals:
    """Intervals by schedule name."""

    def __init__(self) -> None:
        self._intervals: dict[str, Interval] = {}
        self._due: dict[str, datetime] = {}

    def register(self, interval: Interval) -> datetime | None:
        """Remember it in place of an earlier one; when its last copy was due, if there was one."""
        self._intervals[interval.schedule] = interval
        return self._due.get(interval.schedule)

    def get(self, schedule: str) -> Interval | None:
        """The interval of this schedule name."""
        return self._intervals.get(schedule)

    def remember_due(self, job: Job) -> None:
        """If the pending job is the copy of an interval, note when it is due, for putting it back (T3)."""
        # A redriven copy has lost its key: it is a job like any other.
        schedule, key = job.schedule, job.key
        if schedule is not None and schedule in self._intervals and key is not None and key.kind == "schedule":
            self._due[schedule] = job.run_at
