"""Enqueueing: store what is new, answer what is held (E6 to E9)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from treadle.core.clock import from_micros
from treadle.core.draft import answer, pending_job
from treadle.core.job import Enqueued, Job, NewJob
from treadle.stores.sqlite.rows import KIND_CODES, READY, WAITING, due_at, full_jobs
from treadle.stores.sqlite.session import Session, as_json
from treadle.stores.sqlite.statements import statement

INLINE = 256  # characters of payload that are kept in the job's own row
_ROW = re.compile(r"(?<=VALUES )(\([?, ]+\))")
# Rows an insert: few sizes, so that few statements are prepared and kept. SQLite takes 32,766 parameters.
_CHUNKS = (1000, 500, 100, 50, 10, 5, 2, 1)


@dataclass(frozen=True, slots=True)
class Stored:
    """What an insert did: when, when each job is due, and the holders of those that were not new, by place in the batch."""

    now: int
    due: Sequence[int]
    holders: dict[int, Job]


def store_jobs(session: Session, jobs: Sequence[NewJob], now: int) -> Stored:
    """Insert the jobs in order, first wins (E9)."""
    due = [due_at(job, now) for job in jobs]
    held: dict[int, int] = {}
    start = 0
    for size in _sizes(len(jobs)):
        chunk = jobs[start : start + size]
        row = statement("insert_jobs")
        [(made, last)] = session.execute(_repeated(row, size), _parameters(chunk, due[start : start + size], now))
        # What an insert made has the highest seqs, one after another, in the order of the batch.
        seqs = range(last - made + 1, last + 1) if made else range(0)
        held_here = _held(session, chunk, seqs) if made < size else {}
        new = [job.payload_json for place, job in enumerate(chunk) if place not in held_here]
        store_long(session, [(seq, text) for seq, text in zip(seqs, new, strict=True) if len(text) > INLINE])
        held.update((start + place, seq) for place, seq in held_here.items())
        session.arrived = session.arrived or made > 0
        start += size
    return Stored(now, due, _holders(session, held) if held else {})


def store_long(session: Session, payloads: Sequence[tuple[int, str]]) -> None:
    """Store the payloads that are apart, by the seqs of their jobs."""
    start = 0
    for size in _sizes(len(payloads)):
        part = payloads[start : start + size]
        session.execute(_repeated(statement("insert_payloads"), size), tuple(value for pair in part for value in pair))
        start += size


def answers(jobs: Sequence[NewJob], stored: Stored) -> list[Enqueued]:
    """What the caller is told of each job. Apart from the insert, so that no lock is held meanwhile."""
    created_at = from_micros(stored.now)
    told = []
    for place, (job, due) in enumerate(zip(jobs, stored.due, strict=True)):
        holder = stored.holders.get(place)
        if holder is not None:
            told.append(answer(holder, created=False))
        else:
            run_at = created_at if due == stored.now else from_micros(due)
            told.append(answer(pending_job(job, created_at, run_at), created=True))
    return told


def _sizes(jobs: int) -> list[int]:
    sizes = []
    for size in _CHUNKS:
        sizes += [size] * (jobs // size)
        jobs %= size
    return sizes


@cache
def _repeated(insert: str, rows: int) -> str:
    """The insert of one row, for so many."""
    head, values, rest = _ROW.split(insert, maxsplit=1)
    return head + ", ".join([values] * rows) + rest


def _parameters(jobs: Sequence[NewJob], due: Sequence[int], now: int) -> tuple[object, ...]:
    parameters: list[object] = []
    for job, run_at in zip(jobs, due, strict=True):
        key = job.key
        parameters += (
            job.id,
            job.queue,
            job.name,
            job.payload_json if len(job.payload_json) <= INLINE else None,
            READY if run_at <= now else WAITING,
            job.priority,
            run_at,
            now,
            job.max_attempts,
            0 if key is None else KIND_CODES[key.kind],
            None if key is None else key.text,
            job.schedule,
        )
    return tuple(parameters)


def _held(session: Session, jobs: Sequence[NewJob], made: range) -> dict[int, int]:
    """The places of the jobs that were not stored, and the seq of who holds the id, or else the key, of each."""
    asked = [
        (job.id, job.name, KIND_CODES[job.key.kind], job.key.text) if job.key else (job.id, job.name, 0, None) for job in jobs
    ]
    seen: set[int] = set()
    held: dict[int, int] = {}
    for place, by_id, by_key in session.loaded("holders", jobs=as_json(asked)):
        if by_id is not None and by_id in made and by_id not in seen:
            seen.add(by_id)
        else:
            held[place] = by_key if by_id is None else by_id
    return held


def _holders(session: Session, held: dict[int, int]) -> dict[int, Job]:
    seqs = list(dict.fromkeys(held.values()))
    jobs = dict(zip(seqs, full_jobs(session, seqs), strict=True))
    return {place: jobs[seq] for place, seq in held.items()}
