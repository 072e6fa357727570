"""Intervals: remembered, and their pending copies put back (T1 to T4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from treadle.core.clock import from_micros
from treadle.core.job import Enqueued
from treadle.core.schedule import Interval
from treadle.stores.sqlite.enqueueing import answers, store_jobs
from treadle.stores.sqlite.rows import from_template, template
from treadle.stores.sqlite.session import Session, as_json

Wanted = Sequence[tuple[Interval, str]]


class _Known(NamedTuple):
    """What is stored of an interval; all None if nothing is."""

    seconds: float | None
    job: str | None
    due: int | None
    held: int


def settled(session: Session, wanted: Wanted) -> list[Enqueued | None] | None:
    """The answer where every interval is remembered as it is and has its copy, without a lock; else None."""
    for (interval, _), known in zip(wanted, _known(session, wanted), strict=True):
        if not known.held or known.job != template(interval.job) or known.seconds != interval.seconds:
            return None
    return [None] * len(wanted)


def ensure(session: Session, wanted: Wanted, now: int) -> list[Enqueued | None]:
    """Remember each interval and put its copy back where none is unfinished."""
    told: list[Enqueued | None] = []
    for interval, job_id in wanted:
        [known] = _known(session, [(interval, job_id)])
        session.rows("interval_remember", schedule=interval.schedule, seconds=interval.seconds, job=template(interval.job))
        if known.held:
            told.append(None)
            continue
        due = now if known.due is None else known.due
        copies = [replace(interval.job, id=job_id, delay=0.0, run_at=from_micros(due))]
        stored = store_jobs(session, copies, now)
        if not stored.holders:
            session.rows("interval_due", schedule=interval.schedule, due=due)
        told += answers(copies, stored)
    return told


def remembered(session: Session, schedules: Sequence[str]) -> list[Interval]:
    """The stored intervals of these names."""
    rows = session.rows("intervals", schedules=as_json(list(dict.fromkeys(schedules))))
    return [Interval(seconds, from_template(job)) for _, seconds, job in rows]


def _known(session: Session, wanted: Wanted) -> list[_Known]:
    asked = [
        (interval.schedule, interval.job.name, interval.job.key.text if interval.job.key else interval.schedule)
        for interval, _ in wanted
    ]
    return [_Known(*row) for row in session.loaded("interval_look", wanted=as_json(asked))]
