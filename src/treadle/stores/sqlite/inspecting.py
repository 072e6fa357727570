"""Reading: jobs by id, what is held or expired, names, due queues, and the aggregate (L6, E19, E21)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from treadle.core.clock import from_micros
from treadle.core.job import Job, State
from treadle.core.store import Claim, Expired, Stats, Tally
from treadle.stores.sqlite.claiming import FACES
from treadle.stores.sqlite.rows import ID, STATES, TOKEN, full_jobs, jobs_of, rows_of
from treadle.stores.sqlite.session import Session, as_json

_NEVER = 2**63 - 1
_STEP = 1000


def get(session: Session, ids: Sequence[str]) -> list[Job]:
    """The stored jobs of these ids, in their order."""
    asked = list(dict.fromkeys(ids))
    seqs: list[int] = []
    for start in range(0, len(asked), _STEP):
        seqs += session.loaded("seqs_by_id", ids=as_json(asked[start : start + _STEP]))
    found = {job.id: job for job in full_jobs(session, seqs)}
    return [found[one] for one in ids if one in found]


def held(session: Session, tokens: Sequence[str]) -> list[tuple[Claim, Job]]:
    """The running jobs of these tokens."""
    rows = rows_of(session, session.loaded("held", tokens=as_json(list(tokens))))
    return [(Claim(row[ID], row[TOKEN]), job) for row, job in zip(rows, jobs_of(rows), strict=True)]


def expired(session: Session, limit: int, now: int) -> list[Expired]:
    """The running jobs whose lease is past, longest past first."""
    rows = rows_of(session, session.loaded("expired", limit=limit, now=now))
    return [Expired(Claim(row[ID], row[TOKEN]), job) for row, job in zip(rows, jobs_of(rows), strict=True)]


def stats(session: Session) -> Stats:
    """The aggregate over all jobs."""
    [(pending, running, done, dead, next_run_at, names, duplicates)] = session.rows("stats")
    return Stats(
        pending=pending,
        running=running,
        done=done,
        dead=dead,
        next_run_at=None if next_run_at == _NEVER else from_micros(next_run_at),
        duplicates=json.loads(duplicates),
        duplicate_names=names,
    )


def tally(session: Session) -> Tally:
    """Jobs by queue, name and state, and the earliest `run_at` of each queue's pending ones."""
    [(groups, oldest)] = session.rows("tally")
    counts: Counter[tuple[str, str, State]] = Counter()
    for queue, name, state, jobs in json.loads(groups):
        counts[queue, name, STATES[state]] += jobs  # pending jobs are in two groups, those that wait and those that are ready
    return Tally(dict(counts), {queue: from_micros(run_at) for queue, run_at in json.loads(oldest).items()})


def pending_names(session: Session, queues: Sequence[str] | None) -> list[str]:
    """The names of pending jobs, sorted."""
    asked = _queues(queues)
    ready = session.loaded("pending_names", "ready_kinds", **asked)
    return sorted({*ready, *session.loaded("pending_names", "waiting_kinds", **asked)})


def due(session: Session, queues: Sequence[str], now: int) -> set[str]:
    """The queues that have a job to claim."""
    asked = _queues(queues)
    ready = set(session.loaded("due_ready", now=now, **asked))
    return ready | set(session.loaded("due_waiting", now=now, **asked))


def _queues(queues: Sequence[str] | None) -> dict[str, Any]:
    return {
        "queues": None if queues is None else as_json(list(dict.fromkeys(queues))),
        "names": None,
        "of_faces": 0,
        **FACES,
    }
