"""Jobs and answers built the quick way: on the hot path, a frozen dataclass of twenty fields costs more than storing the job.

A draft is laid out like what it becomes and may be written to; `sealed` changes its class, and nothing can write to it any
more. That costs a tenth of setting each field through `object.__setattr__`, as the dataclass's own constructor does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from treadle.core.job import Enqueued, Failure, Job, Key, NewJob, State

_new = object.__new__
_FAILURES: Any = cast("Any", Job).failures  # the slot itself, which the frozen class guards only by its `__setattr__`
_PENDING = State.PENDING  # a member looked up on its class takes longer than four fields take to copy


class _JobDraft(Job):
    """A job that is still being written."""

    __slots__ = ()
    # Both at once: with only one of them replaced every write takes the slow path.
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


class _NewJobDraft(NewJob):
    """A new job that is still being written."""

    __slots__ = ()
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


class _AnswerDraft(Enqueued):
    """An answer that is still being written."""

    __slots__ = ()
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


def job_draft() -> Any:
    """A job to be written field by field, every one of them, and then `sealed`."""
    return _new(_JobDraft)


def sealed(draft: Any) -> Job:
    """The draft as the immutable job that it is from now on."""
    draft.__class__ = Job
    job: Job = draft
    return job


def add_failures(job: Job, failures: Sequence[Failure]) -> None:
    """Complete a job that has just been made, and that nobody else has seen, with its failures."""
    _FAILURES.__set__(job, failures)


def pending_job(new: NewJob, now: datetime, run_at: datetime) -> Job:
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
    return sealed(draft)


def new_job(
    id: str,
    name: str,
    payload_json: str,
    queue: str,
    delay: float,
    run_at: datetime | None,
    priority: int,
    max_attempts: int | None,
    key: Key | None,
) -> NewJob:
    """As `NewJob(...)`, without a schedule."""
    draft: Any = _new(_NewJobDraft)
    draft.id = id
    draft.name = name
    draft.payload_json = payload_json
    draft.queue = queue
    draft.delay = delay
    draft.run_at = run_at
    draft.priority = priority
    draft.max_attempts = max_attempts
    draft.key = key
    draft.schedule = None
    draft.__class__ = NewJob
    new: NewJob = draft
    return new


def answer(job: Job, *, created: bool) -> Enqueued:
    """As `Enqueued(job.id, created, job)`."""
    draft: Any = _new(_AnswerDraft)
    draft.id = job.id
    draft.created = created
    draft.job = job
    draft.__class__ = Enqueued
    enqueued: Enqueued = draft
    return enqueued
