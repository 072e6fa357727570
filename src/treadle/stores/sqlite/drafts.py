"""Jobs and answers built the quick way, since a frozen dataclass of twenty fields costs more than storing the job.

A draft is laid out like what it becomes and may be written to; sealing it changes its class, and nothing can write to it
any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from treadle.core.job import Enqueued, Failure, Job, Key, NewJob, State

_new = object.__new__
_PENDING = State.PENDING


class _JobDraft(Job):
    """A job that is still being written."""

    __slots__ = ()
    # Both at once: with only one of them replaced every write takes the slow path.
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


class _AnswerDraft(Enqueued):
    """An answer that is still being written."""

    __slots__ = ()
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


def pending(new: NewJob, now: datetime, run_at: datetime) -> Job:
    """As `NewJob.stored`."""
    draft: Any = _new(_JobDraft)
    draft.id = new.id
    draft.queue = new.queue
    draft.name = new.name
    draft.payload_json = new.payload_json
    draft.state = _PENDING
    draft.priority = new.priority
    draft.run_at = run_at
    draft.created_at = now
    draft.started_at = None
    draft.finished_at = None
    draft.attempts = 0
    draft.max_attempts = new.max_attempts
    draft.interruptions = 0
    draft.last_error = None
    draft.key = new.key
    draft.schedule = new.schedule
    draft.worker = None
    draft.lease_until = None
    draft.note = None
    draft.failures = ()
    draft.__class__ = Job
    job: Job = draft
    return job


def stored(
    row: Sequence[Any], state: State, moments: dict[int | None, datetime | None], key: Key | None, failures: Sequence[Failure]
) -> Job:
    """The job of a row of `jobs_by_seq`; `moments` has each moment that the row names."""
    draft: Any = _new(_JobDraft)
    (
        _,
        _,
        draft.id,
        draft.queue,
        draft.name,
        draft.payload_json,
        _,
        draft.priority,
        run_at,
        created_at,
        started_at,
        finished_at,
        draft.attempts,
        draft.max_attempts,
        draft.interruptions,
        draft.last_error,
        _,
        _,
        draft.schedule,
        draft.worker,
        lease_until,
        draft.note,
    ) = row
    draft.state = state
    draft.run_at = moments[run_at]
    draft.created_at = moments[created_at]
    draft.started_at = moments[started_at]
    draft.finished_at = moments[finished_at]
    draft.lease_until = moments[lease_until]
    draft.key = key
    draft.failures = failures
    draft.__class__ = Job
    job: Job = draft
    return job


def answer(job: Job, *, created: bool) -> Enqueued:
    """What the caller is told of a job."""
    draft: Any = _new(_AnswerDraft)
    draft.id = job.id
    draft.created = created
    draft.job = job
    draft.__class__ = Enqueued
    enqueued: Enqueued = draft
    return enqueued
