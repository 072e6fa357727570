"""Cron schedules in memory: by name, and fired in one step with their jobs (T9 to T14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from treadle.core.job import Enqueued
from treadle.core.schedule import Schedule
from treadle.core.store import REWOUND, DueSchedules, Firing
from treadle.stores.memory.ledger import Ledger
from treadle.stores.memory.moments import in_utc


class ScheduleShelf:
    """Schedules by name. Looking for the due ones reads them all: a process holds few, and they are its own."""

    def __init__(self) -> None:
        self._kept: dict[str, Schedule] = {}

    def put(self, schedule: Schedule, expect: int | None) -> Schedule | None:
        """Store it, if the expected revision is there."""
        current = self._kept.get(schedule.name)
        revision = 0 if current is None else current.revision
        if expect is not None and expect != revision:
            return None
        stored = self._kept[schedule.name] = replace(
            schedule, next_at=_in_utc(schedule.next_at), last_at=_in_utc(schedule.last_at), revision=revision + 1
        )
        return stored

    def get(self, name: str) -> Schedule | None:
        """The schedule of that name."""
        return self._kept.get(name)

    def list(self, prefix: str, after: str, limit: int) -> Sequence[Schedule]:
        """Schedules by name."""
        names = sorted(name for name in self._kept if name.startswith(prefix) and name > after)
        return [self._kept[name] for name in names[:limit]]

    def delete(self, name: str) -> bool:
        """Delete it; whether it was there."""
        return self._kept.pop(name, None) is not None

    def due(self, limit: int, now: datetime) -> DueSchedules:
        """What is due, earliest first, and when the next one is."""
        going = [schedule for schedule in self._kept.values() if not schedule.paused]
        rewound = now + timedelta(seconds=REWOUND)
        due: list[tuple[datetime, str]] = []
        later: list[datetime] = []
        for schedule in going:
            if schedule.next_at is not None and schedule.next_at <= now:
                due.append((schedule.next_at, schedule.name))
            elif schedule.last_at is not None and schedule.last_at > rewound:
                due.append((now, schedule.name))
            elif schedule.next_at is not None:
                later.append(schedule.next_at)
        found = [self._kept[name] for _, name in sorted(due)[:limit]]
        if len(due) > limit:
            return DueSchedules(now, found, 0.0)
        return DueSchedules(now, found, (min(later) - now).total_seconds() if later else None)

    def fire(self, ledger: Ledger, firings: Sequence[Firing], now: datetime) -> Sequence[Enqueued | None]:
        """Advance and enqueue where the schedule is as it was read."""
        return [self._fire(ledger, firing, now) for firing in firings]

    def _fire(self, ledger: Ledger, firing: Firing, now: datetime) -> Enqueued | None:
        current = self._kept.get(firing.schedule.name)
        read = firing.schedule
        if current is None or current.paused or (current.revision, current.next_at) != (read.revision, read.next_at):
            return None
        [answer] = ledger.insert([firing.job], now)
        last_at = in_utc(now) if answer.created else current.last_at
        self._kept[read.name] = replace(
            current, next_at=_in_utc(firing.next_at), last_at=last_at, revision=current.revision + 1
        )
        return answer

    def restore(self, schedule: Schedule) -> None:
        """Keep it as it was, with its revision, unless there is one of its name (S13)."""
        self._kept.setdefault(schedule.name, schedule)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._kept)


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else in_utc(moment)
