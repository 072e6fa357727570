"""Moments as people read them: how long ago, in how long (L8)."""

from __future__ import annotations

from datetime import datetime

from treadle.core.job import Job, State

_UNITS = ((2 * 365 * 86400, 365 * 86400, "y"), (2 * 86400, 86400, "d"), (2 * 3600, 3600, "h"), (120, 60, "min"))


def span(seconds: float) -> str:
    """A length of time in its largest fitting unit, rounded down: 20 ms, 45 s, 3 min, 12 h, 5 d, 2 y."""
    for least, size, unit in _UNITS:
        if seconds >= least:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s" if seconds >= 1 else f"{max(0, int(seconds * 1000))} ms"


def relative(moment: datetime, now: datetime) -> str:
    """When the moment is, seen from now."""
    away = (moment - now).total_seconds()
    if -1 < away < 1:
        return "now"
    return f"in {span(away)}" if away > 0 else f"{span(-away)} ago"


def standing(job: Job, now: datetime) -> str:
    """The one moment that matters in the job's state: when it is due, since when it runs, when it ended."""
    match job.state:
        case State.PENDING:
            return relative(job.run_at, now) if job.run_at > now else f"due {relative(job.run_at, now)}"
        case State.RUNNING:
            return f"for {span((now - (job.started_at or now)).total_seconds())}"
        case State.DONE | State.DEAD:
            return relative(job.finished_at or job.created_at, now)


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with a Z, and microseconds where there are some (L8)."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def stamp(moment: datetime, now: datetime) -> str:
    """How far away the moment is, and the moment to the second in UTC."""
    return f"{relative(moment, now)} ({moment:%Y-%m-%d %H:%M:%S}Z)"
