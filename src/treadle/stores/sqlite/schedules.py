"""Cron schedules: stored under a revision, found through an index when due, fired in one step with their jobs (T9 to T14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from treadle.core.clock import from_micros, to_micros
from treadle.core.job import Enqueued
from treadle.core.schedule import Schedule
from treadle.core.store import REWOUND, DueSchedules, Firing
from treadle.stores.sqlite.documents import above
from treadle.stores.sqlite.enqueueing import answers, store_jobs
from treadle.stores.sqlite.moments import later
from treadle.stores.sqlite.rows import from_template, template
from treadle.stores.sqlite.session import Row, Session


def put(session: Session, schedule: Schedule, expect: int | None) -> Schedule | None:
    """Store it, if the expected revision is there."""
    current = get(session, schedule.name)
    revision = 0 if current is None else current.revision
    if expect is not None and expect != revision:
        return None
    stored = replace(
        schedule,
        next_at=_moment(_micros(schedule.next_at)),  # in UTC, as it will be read
        last_at=_moment(_micros(schedule.last_at)),
        revision=revision + 1,
    )
    write(session, "schedule_put", stored)
    return stored


def write(session: Session, statement: str, schedule: Schedule) -> None:
    """Write the schedule as it is, by that statement."""
    session.rows(
        statement,
        name=schedule.name,
        expression=schedule.expression,
        tz=schedule.tz,
        seconds=int(schedule.seconds),
        job=template(schedule.job),
        next_at=_micros(schedule.next_at),
        last_at=_micros(schedule.last_at),
        paused=int(schedule.paused),
        revision=schedule.revision,
    )


def get(session: Session, name: str) -> Schedule | None:
    """The schedule of that name."""
    rows = session.rows("schedule_get", name=name)
    return _schedule(rows[0]) if rows else None


def listed(session: Session, prefix: str, after: str, limit: int) -> list[Schedule]:
    """Schedules by name, in code-point order."""
    start = max(prefix, f"{after}\0") if after else prefix  # the least text above `after`; NUL is below all others
    return [_schedule(row) for row in session.rows("schedules_list", start=start, stop=above(prefix), limit=limit)]


def delete(session: Session, name: str) -> bool:
    """Delete it; whether it was there."""
    [(deleted, _)] = session.rows("schedule_delete", name=name)
    return bool(deleted)


def due(session: Session, limit: int, now: int) -> DueSchedules:
    """What is due, earliest first, and when the next one is."""
    rewound = later(now, REWOUND)
    found = [_schedule(row) for row in session.rows("schedules_due", now=now, rewound=rewound, limit=limit + 1)]
    if len(found) > limit:
        return DueSchedules(from_micros(now), found[:limit], 0.0)
    next_at = session.value("schedules_next", now=now, rewound=rewound)
    return DueSchedules(from_micros(now), found, None if next_at is None else (next_at - now) / 1_000_000)


def fire(session: Session, firings: Sequence[Firing], now: int) -> list[Enqueued | None]:
    """Advance and enqueue where the schedule is as it was read."""
    return [_fire(session, firing, now) for firing in firings]


def _fire(session: Session, firing: Firing, now: int) -> Enqueued | None:
    read = firing.schedule
    current = get(session, read.name)
    if current is None or current.paused or (current.revision, current.next_at) != (read.revision, read.next_at):
        return None
    jobs = [firing.job]
    stored = store_jobs(session, jobs, now)
    last_at = None if stored.holders else now
    session.rows("schedule_fired", name=read.name, next_at=_micros(firing.next_at), last_at=last_at)
    [answer] = answers(jobs, stored)
    return answer


def _schedule(row: Row) -> Schedule:
    name, expression, tz, seconds, job, next_at, last_at, paused, revision = row
    return Schedule(
        name, expression, tz, bool(seconds), from_template(job), _moment(next_at), _moment(last_at), bool(paused), revision
    )


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
