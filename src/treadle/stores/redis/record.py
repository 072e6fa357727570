"""Jobs as the scripts keep and answer them (see scripts/include/record.lua), made into `Job` values the quick way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from treadle.core.draft import add_failures, job_draft, sealed
from treadle.core.errors import StoreError
from treadle.core.job import Enqueued, Failure, Job, Key, KeyKind, State
from treadle.stores.redis.moment import NEVER, at, moment, surely_at
from treadle.stores.redis.wire import clean

Whole = Sequence[Sequence[str]]  # ids, records, payloads

BODY = 127
CAUSE = "was its data edited, or evicted? Its maxmemory-policy must be noeviction"
_STATES = {"p": State.PENDING, "r": State.RUNNING, "d": State.DONE, "x": State.DEAD}


def jobs(whole: Whole, failures: Sequence[Any] = ()) -> list[Job]:
    """The jobs of an answer; `failures` has the places, from 1, of those that failed, and their failures, in turn."""
    ids, records, payloads = whole
    found = list(map(_job, ids, records, payloads))
    for place, texts in zip(failures[::2], failures[1::2], strict=True):
        add_failures(found[place - 1], tuple(map(_failure, texts)))
    return found


def placed(places: Sequence[Sequence[Any]], whole: Whole) -> list[Enqueued | None]:
    """What scripts/ensure.lua and scripts/fire.lua answer: for each nothing, or whether it is new, and which job it is."""
    found = {job.id: job for job in jobs(whole)}
    return [Enqueued(ids[0], became == 1, found[ids[0]]) if ids else None for became, *ids in places]


def parted(whole: Whole) -> tuple[Whole, list[tuple[str, str]]]:
    """The running jobs of an answer that are whole, and the id and token of each whose payload is gone."""
    _, _, payloads = whole
    if None not in payloads:
        return whole, []
    rows = list(zip(*whole, strict=True))
    there = [row for row in rows if row[2] is not None]
    gone = [row for row in rows if row[2] is None]
    lost = list(zip((row[0] for row in gone), tokens([(), [row[1] for row in gone], ()]), strict=True))
    return [[row[place] for row in there] for place in range(3)], lost


def tokens(whole: Whole) -> list[str]:
    """The tokens that hold the running jobs of an answer."""
    return [record[BODY:].split("\0", 2)[1] for record in whole[1]]


def text_of(job: Job) -> str:
    """The record of a job that does not run, as scripts/include/record.lua keeps it."""
    key = job.key
    state = next(sign for sign, state in _STATES.items() if state is job.state)
    body = (
        "",  # worker and token, which a job has only while it runs
        "",
        job.queue,
        job.name,
        "" if key is None else key.kind,
        "" if key is None else key.text,
        job.schedule or "",
        "" if job.last_error is None else "=" + clean(job.last_error),
        "" if job.note is None else "=" + clean(job.note),
    )
    return (
        f"{state}{job.attempts:06d}{job.max_attempts or 0:05d}{job.interruptions:06d}{len(job.failures):06d}"
        f"{moment(job.run_at)}{moment(job.created_at)}{_moment(job.started_at)}{_moment(job.finished_at)}{NEVER}"
        f"{1000 - job.priority:04d}{len(job.payload_json.encode()):09d}" + "\0".join(body)
    )


def failure_text(failure: Failure) -> str:
    """A failure as it is kept in the list of its job."""
    return "\0".join(
        (
            str(failure.attempt),
            clean(failure.worker),
            moment(failure.started_at),
            moment(failure.ended_at),
            clean(failure.error),
        )
    )


def _moment(when: datetime | None) -> str:
    return NEVER if when is None else moment(when)


def _job(job_id: str, record: str | None, payload: str | None) -> Job:
    if record is None or payload is None:
        raise StoreError(f"Redis has lost a part of job {job_id}: {CAUSE}")
    worker, _, queue, name, kind, key, schedule, last_error, note = record[BODY:].split("\0")
    draft = job_draft()
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
    return sealed(draft)


def _failure(text: str) -> Failure:
    attempt, worker, started, ended, error = text.split("\0", 4)
    return Failure(int(attempt), worker, surely_at(started), surely_at(ended), error)
