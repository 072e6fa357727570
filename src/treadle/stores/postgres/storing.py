"""Enqueueing as statements and their answers, for connections of every kind, blocking or not (E6, E7, E8, E9, E10)."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from treadle.core.clock import from_micros
from treadle.core.draft import answer, pending_job
from treadle.core.errors import StoreError
from treadle.core.job import Enqueued, NewJob
from treadle.core.policies.limits import FAR_FUTURE
from treadle.stores.postgres import rows
from treadle.stores.postgres.arrays import Texts
from treadle.stores.postgres.rows import Row

Statement: TypeAlias = tuple[str, Sequence[object]]
Storing: TypeAlias = Generator[Statement, Sequence[Row], list[Enqueued]]
"""Yields the name and the parameters of statements, is sent their rows, and returns the answers."""

MOST_JOBS = 5_000
MOST_TEXT = 32_000_000  # characters of payload in one statement; the server takes no message of a gigabyte
_ROUNDS = 100


def batches(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """The jobs in batches that one statement can carry."""
    first = size = 0
    for at, job in enumerate(jobs):
        size += len(job.payload_json)
        if at > first and (at - first >= MOST_JOBS or size > MOST_TEXT):
            yield jobs[first:at]
            first, size = at, len(job.payload_json)
    if first < len(jobs):
        yield jobs[first:]


def storing(jobs: Sequence[NewJob], now: datetime | None, *, repeated: bool = False) -> Storing:
    """Store a batch. `repeated`: an earlier try may have stored it, so a job found under its own id counts as created.

    A holder can end between the insert that it kept out and the look at it; the insert is then made again, until the job is
    created or its holder is found: there is no third outcome (E8).
    """
    answers: dict[int, Enqueued] = {}
    left = list(enumerate(jobs))
    for _ in range(_ROUNDS):
        firsts: dict[str, NewJob] = {}
        for _, job in left:
            firsts.setdefault(job.id, job)
        [(micros, number, some)] = yield "enqueue", _arrays(list(firsts.values()), now)
        at = from_micros(micros)
        created = set(firsts) if number == len(firsts) else set(json.loads(some or "[]"))
        kept_out = []
        for position, job in left:
            if job.id in created:
                created.remove(job.id)
                answers[position] = _created(job, at)
            else:
                kept_out.append((position, job))
        left = []
        if kept_out:
            holders = {row[0]: rows.job(row[1:]) for row in (yield "holders", _keys([job for _, job in kept_out]))}
            for index, (position, job) in enumerate(kept_out, 1):
                holder = holders.get(index)
                if holder is None:
                    left.append((position, job))
                else:
                    own = repeated and holder.id == job.id and firsts[job.id] is job
                    answers[position] = Enqueued(holder.id, own, holder)
        if not left:
            return [answers[position] for position in range(len(jobs))]
    raise StoreError(f"a key is taken and let go too fast: after {_ROUNDS} tries {len(left)} jobs are neither stored nor held")


def _arrays(jobs: Sequence[NewJob], now: datetime | None) -> list[object]:
    """The parameters of enqueue.sql: whole columns are left out where no job needs them."""
    keys = [job.key for job in jobs]
    keyed = any(key is not None for key in keys)
    return [
        None if now is None else now.isoformat(),
        Texts([job.id for job in jobs]),
        Texts([job.name for job in jobs]),
        Texts([job.payload_json for job in jobs]),
        Texts([job.queue for job in jobs]) if any(job.queue != "default" for job in jobs) else None,
        [float(rows.bounded(job.delay)) for job in jobs],
        _texts([None if job.run_at is None else job.run_at.isoformat() for job in jobs]),
        [job.priority for job in jobs] if any(job.priority for job in jobs) else None,
        [job.max_attempts for job in jobs] if any(job.max_attempts is not None for job in jobs) else None,
        Texts([None if key is None else key.kind for key in keys]) if keyed else None,
        Texts([None if key is None else key.text for key in keys]) if keyed else None,
        _texts([job.schedule for job in jobs]),
    ]


def _texts(column: list[str | None]) -> Texts | None:
    return Texts(column) if any(one is not None for one in column) else None


def _keys(jobs: Sequence[NewJob]) -> list[object]:
    """The parameters of holders.sql."""
    return [
        Texts([job.id for job in jobs]),
        Texts([job.name for job in jobs]),
        Texts([None if job.key is None else job.key.kind for job in jobs]),
        Texts([None if job.key is None else job.key.text for job in jobs]),
    ]


def _created(new: NewJob, now: datetime) -> Enqueued:
    """The answer for a job that was stored at `now`."""
    run_at = new.run_at.astimezone(UTC) if new.run_at is not None else _later(now, new.delay)
    return answer(pending_job(new, now, run_at), created=True)


def _later(now: datetime, delay: float) -> datetime:
    if not delay:
        return now
    try:
        return now + timedelta(seconds=delay)
    except OverflowError:
        return FAR_FUTURE
