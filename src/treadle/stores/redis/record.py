"""Jobs as the scripts keep and answer them (see scripts/include/record.lua), made into `Job` values the quick way.

A frozen dataclass of twenty fields sets each through `object.__setattr__`, which takes longer than all else that is done
to a job here. A `_Draft` is laid out like a `Job` and may be written to; sealing it makes it a `Job` and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from treadle.core.errors import StoreError
from treadle.core.job import Enqueued, Failure, Job, Key, KeyKind, NewJob, State
from treadle.stores.redis.moment import at, surely_at

Whole = Sequence[Sequence[str]]  # ids, records, payloads

BODY = 127
_STATES = {"p": State.PENDING, "r": State.RUNNING, "d": State.DONE, "x": State.DEAD}


class _Draft(Job):
    """A job that is still being written; it leaves this file only as a sealed `Job`."""

    __slots__ = ()
    # Both at once: a class with only one of them replaced pays for the slow path on every write.
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


def jobs(whole: Whole, failures: Sequence[Any] = ()) -> list[Job]:
    """The jobs of an answer; `failures` has the places, from 1, of those that failed, and their failures, in turn."""
    ids, records, payloads = whole
    found = list(map(_job, ids, records, payloads))
    for place, texts in zip(failures[::2], failures[1::2], strict=True):
        cast("Any", _Draft).failures.__set__(found[place - 1], tuple(map(_failure, texts)))
    return found


def placed(places: Sequence[Sequence[Any]], whole: Whole) -> list[Enqueued | None]:
    """What scripts/ensure.lua and scripts/fire.lua answer: for each nothing, or whether it is new, and which job it is."""
    found = {job.id: job for job in jobs(whole)}
    return [Enqueued(ids[0], became == 1, found[ids[0]]) if ids else None for became, *ids in places]


def tokens(whole: Whole) -> list[str]:
    """The tokens that hold the running jobs of an answer."""
    return [record[BODY:].split("\0", 2)[1] for record in whole[1]]


def stored(new: NewJob, now: datetime, run_at: datetime) -> Job:
    """As `NewJob.stored`."""
    draft: Any = object.__new__(_Draft)
    draft.id = new.id
    draft.queue = new.queue
    draft.name = new.name
    draft.payload_json = new.payload_json
    draft.state = State.PENDING
    draft.priority = new.priority
    draft.run_at = run_at
    draft.created_at = now
    draft.started_at = draft.finished_at = None
    draft.attempts = 0
    draft.max_attempts = new.max_attempts
    draft.interruptions = 0
    draft.last_error = None
    draft.key = new.key
    draft.schedule = new.schedule
    draft.worker = draft.lease_until = draft.note = None
    draft.failures = ()
    return _sealed(draft)


def _job(job_id: str, record: str | None, payload: str | None) -> Job:
    if record is None or payload is None:
        raise StoreError(
            f"Redis has lost a part of job {job_id}: was its data edited, or evicted? Its maxmemory-policy must be noeviction"
        )
    worker, _, queue, name, kind, key, schedule, last_error, note = record[BODY:].split("\0")
    draft: Any = object.__new__(_Draft)
    draft.id = job_id
    draft.queue = queue
    draft.name = name
    draft.payload_json = payload
    draft.state = _STATES[record[0]]
    draft.priority = 1000 - int(record[114:118])
    draft.run_at = surely_at(record[24:42])
    draft.created_at = surely_at(record[42:60])
    draft.started_at = at(record[60:78])
    draft.finished_at = at(record[78:96])
    draft.attempts = int(record[1:7])
    draft.max_attempts = int(record[7:12]) or None
    draft.interruptions = int(record[12:18])
    draft.last_error = last_error[1:] if last_error else None
    draft.key = Key(cast("KeyKind", kind), key) if kind else None
    draft.schedule = schedule or None
    draft.worker = worker or None
    draft.lease_until = at(record[96:114])
    draft.note = note[1:] if note else None
    draft.failures = ()
    return _sealed(draft)


def _sealed(draft: Any) -> Job:
    draft.__class__ = Job
    job: Job = draft
    return job


def _failure(text: str) -> Failure:
    attempt, worker, started, ended, error = text.split("\0", 4)
    return Failure(int(attempt), worker, surely_at(started), surely_at(ended), error)
