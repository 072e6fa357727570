"""Jobs as the memory store makes them: each change is a new immutable `Job`, built the quick way of `core/draft.py`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from treadle.core.draft import job_draft, sealed
from treadle.core.job import Failure, Job, State

# A member looked up on its class takes longer than four fields take to copy.
_PENDING, _RUNNING, _DONE, _DEAD = State.PENDING, State.RUNNING, State.DONE, State.DEAD


def _copy(job: Job) -> Any:
    draft = job_draft()
    draft.id = job.id
    draft.queue = job.queue
    draft.name = job.name
    draft.payload_json = job.payload_json
    draft.state = job.state
    draft.priority = job.priority
    draft.run_at = job.run_at
    draft.created_at = job.created_at
    draft.started_at = job.started_at
    draft.finished_at = job.finished_at
    draft.attempts = job.attempts
    draft.max_attempts = job.max_attempts
    draft.interruptions = job.interruptions
    draft.last_error = job.last_error
    draft.key = job.key
    draft.schedule = job.schedule
    draft.worker = job.worker
    draft.lease_until = job.lease_until
    draft.note = job.note
    draft.failures = job.failures
    return draft


def running(job: Job, now: datetime, lease_until: datetime, worker: str, max_attempts: int) -> Job:
    """The job claimed: one attempt more, and `max_attempts` fixed where it was open (E3, E4)."""
    draft = _copy(job)
    draft.state = _RUNNING
    draft.attempts = job.attempts + 1
    if job.max_attempts is None:
        draft.max_attempts = max_attempts
    draft.started_at = now
    draft.lease_until = lease_until
    draft.worker = worker
    return sealed(draft)


def leased(job: Job, lease_until: datetime) -> Job:
    """The running job with its lease renewed."""
    draft = _copy(job)
    draft.lease_until = lease_until
    return sealed(draft)


def done(job: Job, now: datetime, note: str | None) -> Job:
    """The job after a success."""
    draft = _copy(job)
    draft.state = _DONE
    draft.finished_at = now
    draft.note = note
    draft.worker = draft.lease_until = None
    return sealed(draft)


def dead(job: Job, now: datetime, error: str) -> Job:
    """The job as a dead letter, with the record of its last failure."""
    draft = _copy(job)
    draft.state = _DEAD
    draft.finished_at = now
    draft.last_error = error
    draft.failures = (*job.failures, _failure(job, now, error))
    draft.worker = draft.lease_until = None
    return sealed(draft)


def again(job: Job, now: datetime, run_at: datetime, error: str) -> Job:
    """The job pending after a failed attempt, with the record of it."""
    draft = _copy(job)
    draft.state = _PENDING
    draft.run_at = run_at
    draft.last_error = error
    draft.failures = (*job.failures, _failure(job, now, error))
    draft.worker = draft.lease_until = None
    return sealed(draft)


def released(job: Job, run_at: datetime, *, interrupted: bool) -> Job:
    """The job given back, its attempt refunded."""
    draft = _copy(job)
    draft.state = _PENDING
    draft.run_at = run_at
    draft.attempts = job.attempts - 1
    draft.interruptions = job.interruptions + interrupted
    draft.worker = draft.lease_until = None
    return sealed(draft)


def revived(job: Job, now: datetime, *, reset: bool) -> Job:
    """The dead letter sent round again, due now; `reset` starts its counts from 0. A schedule key is cleared (E17)."""
    draft = _copy(job)
    draft.state = _PENDING
    draft.run_at = now
    draft.finished_at = None
    if reset:
        draft.attempts = draft.interruptions = 0
    if job.key is not None and job.key.kind == "schedule":
        draft.key = None
    return sealed(draft)


def due(job: Job, run_at: datetime) -> Job:
    """The pending job with another due time."""
    draft = _copy(job)
    draft.run_at = run_at
    return sealed(draft)


def _failure(job: Job, now: datetime, error: str) -> Failure:
    return Failure(job.attempts, job.worker or "", job.started_at or now, now, error)
