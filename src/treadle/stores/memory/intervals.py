"""What the store remembers of intervals: the last registration, and when its copy is or was due (T1 to T3)."""

from __future__ import annotations

from datetime import datetime

from treadle.core.job import Job
from treadle.core.schedule import Interval
from treadle.core.transfer import KeptInterval


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

    # -- moving between stores (S13)

    def kept(self, after: str, limit: int) -> list[KeptInterval]:
        """Those beyond that name, in order, each with when its copy is or was due."""
        names = sorted(name for name in self._intervals if name > after)[:limit]
        return [KeptInterval(self._intervals[name], self._due.get(name)) for name in names]

    def restore(self, kept: KeptInterval) -> None:
        """Remember it as it was, unless there is one of its name."""
        name = kept.interval.schedule
        if name not in self._intervals:
            self._intervals[name] = kept.interval
            if kept.due_at is not None:
                self._due[name] = kept.due_at

    def forget(self, schedule: str) -> None:
        """Remember it no longer."""
        self._intervals.pop(schedule, None)
        self._due.pop(schedule, None)

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._intervals)
