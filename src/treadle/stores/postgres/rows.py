"""Rows as values: jobs, documents and outcomes, read and written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeAlias, assert_never

from treadle.core.clock import from_micros, to_micros
from treadle.core.draft import job_draft, sealed
from treadle.core.job import Failure, Job, Key, State
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.payload import decode
from treadle.core.store import Claim, Document

Row: TypeAlias = Sequence[Any]


_LAST = chr(0x10FFFF)


def job(row: Row) -> Job:
    """The job of a row of columns.sql."""
    key = None if row[15] is None else Key(row[15], row[16])
    return Job(
        id=row[0],
        queue=row[1],
        name=row[2],
        payload_json=row[3],
        state=State(row[4]),
        priority=row[5],
        run_at=from_micros(row[6]),
        created_at=from_micros(row[7]),
        started_at=_moment(row[8]),
        finished_at=_moment(row[9]),
        lease_until=_moment(row[10]),
        attempts=row[11],
        max_attempts=row[12],
        interruptions=row[13],
        last_error=row[14],
        key=key,
        schedule=row[17],
        worker=row[18],
        note=row[20],
        failures=_failures(row[21]),
    )


def claim_of(row: Row) -> Claim:
    """The claim that holds the running job of a row of columns.sql."""
    return Claim(row[0], row[19])


def claimed(rows: Sequence[Row], worker: str) -> list[Job]:
    """The jobs of a claim, in no order; `rows` are those of claim.sql."""
    jobs: list[Job] = []
    running = State.RUNNING
    for (
        _,
        _,
        _,
        _,
        job_id,
        queue,
        name,
        payload,
        priority,
        run_at,
        created_at,
        started_at,
        attempts,
        max_attempts,
        interruptions,
        last_error,
        key_kind,
        key,
        schedule,
        lease_until,
        note,
    ) in rows:
        draft = job_draft()
        draft.id = job_id
        draft.queue = queue
        draft.name = name
        draft.payload_json = payload
        draft.state = running
        draft.priority = priority
        draft.run_at = run_at
        draft.created_at = created_at
        draft.started_at = started_at
        draft.finished_at = None
        draft.attempts = attempts
        draft.max_attempts = max_attempts
        draft.interruptions = interruptions
        draft.last_error = last_error
        draft.key = None if key_kind is None else Key(key_kind, key)
        draft.schedule = schedule
        draft.worker = worker
        draft.lease_until = lease_until
        draft.note = note
        draft.failures = ()
        jobs.append(sealed(draft))
    return jobs


def order(job: Job) -> tuple[int, datetime, str]:
    """What decides the order of claiming (E28)."""
    return (-job.priority, job.run_at, job.id)


def outcome(outcome: Outcome) -> list[object]:
    """What finish.sql makes of an outcome: state, delay, error, refund, interruption, note."""
    match outcome:
        case Done(note):
            return ["done", 0, None, 0, 0, None if note is None else storable(note)]
        case Dead(error):
            return ["dead", 0, storable(error), 0, 0, None]
        case RetryAfter(seconds, error):
            return ["pending", bounded(seconds), storable(error), 0, 0, None]
        case Released(seconds, interrupted):
            return ["pending", bounded(seconds), None, 1, int(interrupted), None]
        case _:
            assert_never(outcome)


def document(row: Row) -> Document:
    """The document of a row of key, value, revision and expiry."""
    return Document(row[0], decode(row[1]), row[2], _moment(row[3]))


def bounded(seconds: float) -> float:
    """Seconds that the server can add to a moment; what is beyond the year 9999 it brings back there."""
    return max(-2e11, min(seconds, 3e11))


def storable(text: str) -> str:
    """Text as Postgres can hold it: without NUL, unpaired surrogates replaced."""
    if "\0" not in text and text.isascii():
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def possible(texts: Sequence[str] | frozenset[str]) -> list[str]:
    """Those of the texts that can be stored at all: the others match nothing, and no driver takes them."""
    return [text for text in texts if storable(text) == text]


def beyond(prefix: str) -> str | None:
    """The first text after all that begin with the prefix; None where there is none."""
    bare = prefix.rstrip(_LAST)
    if not bare:
        return None
    following = ord(bare[-1]) + 1
    return bare[:-1] + chr(0xE000 if following == 0xD800 else following)


def micros(moment: datetime | None) -> int | None:
    """Microseconds since 1970, as fences carry a moment."""
    return None if moment is None else to_micros(moment)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _failures(text: str | None) -> tuple[Failure, ...]:
    if text is None:
        return ()
    return tuple(
        Failure(attempt, worker, from_micros(started), from_micros(ended), error)
        for attempt, worker, started, ended, error in json.loads(text)
    )
