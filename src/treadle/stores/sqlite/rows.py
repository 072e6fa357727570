"""Rows to jobs, and jobs to rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from treadle.core.clock import from_micros, to_micros
from treadle.core.draft import job_draft, sealed
from treadle.core.job import Failure, Job, Key, KeyKind, NewJob, State
from treadle.stores.sqlite.moments import later
from treadle.stores.sqlite.session import Session, as_json

LoadedRow: TypeAlias = list[Any]

# The places of what is read from a row, in the order of queries/columns.sql.
SEQ, TOKEN, ID, NAME, PAYLOAD, STATE, STARTED_AT = 0, 1, 2, 4, 5, 6, 10
ATTEMPTS, MAX_ATTEMPTS, LAST_ERROR, KEY_KIND, KEY, WORKER, LEASE_UNTIL = 12, 13, 15, 16, 17, 19, 20

WAITING, READY, RUNNING, DONE, DEAD = range(5)
STATES = (State.PENDING, State.PENDING, State.RUNNING, State.DONE, State.DEAD)
CODES: Mapping[State, tuple[int, ...]] = {
    State.PENDING: (WAITING, READY),
    State.RUNNING: (RUNNING,),
    State.DONE: (DONE,),
    State.DEAD: (DEAD,),
}
KINDS: tuple[KeyKind | None, ...] = (None, "idempotency", "dedupe", "schedule")
KIND_CODES: Mapping[str, int] = {"idempotency": 1, "dedupe": 2, "schedule": 3}

LONG_PAYLOAD = 16_384  # characters; longer ones are read a row each
_STEP = 1000


def rows_of(session: Session, seqs: Sequence[int]) -> list[LoadedRow]:
    """The stored rows of these, in their order; what is gone is left out."""
    found: dict[int, LoadedRow] = {}
    for start in range(0, len(seqs), _STEP):
        part = as_json(seqs[start : start + _STEP])
        rows: list[LoadedRow] = session.loaded("jobs_by_seq", seqs=part, long=LONG_PAYLOAD)
        found.update((row[SEQ], row) for row in rows)
    answer = [found[seq] for seq in seqs if seq in found]
    with_payloads(session, answer)
    return answer


def with_payloads(session: Session, rows: Iterable[LoadedRow]) -> None:
    """Read the payloads that were too long to come with the rows."""
    long = {row[SEQ]: row for row in rows if row[PAYLOAD] is None}
    if long:
        for seq, payload in session.rows("payloads_by_seq", seqs=as_json(list(long))):
            long[seq][PAYLOAD] = payload


def failures_of(session: Session, rows: Sequence[LoadedRow]) -> dict[int, list[Failure]]:
    """The failures of these rows, by seq."""
    failures: dict[int, list[Failure]] = {}
    seqs = [row[SEQ] for row in rows if row[LAST_ERROR] is not None]  # without a last error there was no failure
    for start in range(0, len(seqs), _STEP):
        for job, attempt, worker, started, ended, error in session.loaded(
            "failures_by_job", seqs=as_json(seqs[start : start + _STEP])
        ):
            failure = Failure(attempt, worker, from_micros(started), from_micros(ended), error)
            failures.setdefault(job, []).append(failure)
    return failures


def jobs_of(rows: Iterable[LoadedRow], failures: Mapping[int, Sequence[Failure]] | None = None) -> list[Job]:
    """The jobs that these rows hold."""
    failures = {} if failures is None else failures
    moments = _Moments({None: None})
    return [
        _job(
            row,
            STATES[row[STATE]],
            moments,
            Key(KINDS[row[KEY_KIND]], row[KEY]) if row[KEY_KIND] else None,  # type: ignore[arg-type]  # None is kind 0
            failures.get(row[SEQ], ()),
        )
        for row in rows
    ]


def _job(
    row: Sequence[Any], state: State, moments: dict[int | None, datetime | None], key: Key | None, failures: Sequence[Failure]
) -> Job:
    """The job of a row of `jobs_by_seq`; `moments` has each moment that the row names."""
    draft = job_draft()
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
    return sealed(draft)


class _Moments(dict[int | None, datetime | None]):
    """Each moment made once: most rows of a batch share theirs."""

    def __missing__(self, micros: int | None) -> datetime | None:
        made = self[micros] = None if micros is None else from_micros(micros)
        return made


def full_jobs(session: Session, seqs: Sequence[int]) -> list[Job]:
    """The stored jobs with their failures, in the order given."""
    rows = rows_of(session, seqs)
    return jobs_of(rows, failures_of(session, rows))


def due_at(job: NewJob, now: int) -> int:
    """When the new job is due, if it is stored at `now`."""
    return to_micros(job.run_at) if job.run_at is not None else later(now, job.delay)


def template(job: NewJob) -> str:
    """An interval's template as JSON."""
    key = None if job.key is None else [job.key.kind, job.key.text]
    return as_json([job.name, job.payload_json, job.queue, job.priority, job.max_attempts, key, job.schedule])


def from_template(text: str) -> NewJob:
    """The template that `template` made, without an id."""
    name, payload, queue, priority, max_attempts, key, schedule = json.loads(text)
    return NewJob(
        id="",
        name=name,
        payload_json=payload,
        queue=queue,
        priority=priority,
        max_attempts=max_attempts,
        key=None if key is None else Key(*key),
        schedule=schedule,
    )
