"""Moving between stores, as functions over a session: the mark with its fences, and things put in as they were (S13)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from treadle.core.clock import from_micros, to_micros
from treadle.core.errors import Conflict
from treadle.core.job import FINISHED, Job, State
from treadle.core.payload import encode
from treadle.core.schedule import Interval
from treadle.core.transfer import Cargo, Counts, KeptDocument, KeptInterval, Mark, Stage
from treadle.stores.sqlite import schedules
from treadle.stores.sqlite.changing import remove
from treadle.stores.sqlite.documents import document_of
from treadle.stores.sqlite.enqueueing import INLINE, store_long
from treadle.stores.sqlite.fencing import mark
from treadle.stores.sqlite.migrating import statements_of
from treadle.stores.sqlite.rows import DEAD, DONE, KIND_CODES, READY, WAITING, from_template, full_jobs, template
from treadle.stores.sqlite.session import Session, as_json
from treadle.stores.sqlite.statements import fence

_NO_LIMIT = 1 << 62


def put_mark(session: Session, new: Mark | None, expect: Mark | None) -> bool:
    """Replace the mark, and set up the fences that belong to it."""
    if mark(session) != expect or (new is not None and new.stage is Stage.SEALED and session.value("runs")):
        return False
    for (name,) in session.rows("fences"):
        session.execute(f"DROP TRIGGER {name}", ())
    if new is None:
        session.rows("mark_delete")
        return True
    session.rows("mark_put", mark=new.text())
    if new.fence is not None:
        message = "'" + new.fence.replace("'", "''") + "'"
        for sql in statements_of(fence("draining" if new.stage is Stage.DRAINING else "sealed")):
            session.execute(sql.replace("{message}", message), ())
    else:
        session.arrived = True  # whoever waits for the end of the move
    return True


def kept(session: Session) -> Counts:
    """How much there is beside jobs."""
    [(intervals, cron, kept_documents)] = session.rows("kept")
    return Counts(intervals=intervals, schedules=cron, documents=kept_documents)


def kept_intervals(session: Session, after: str, limit: int) -> list[KeptInterval]:
    """Intervals in order."""
    return [
        KeptInterval(Interval(seconds, from_template(job)), None if due is None else from_micros(due))
        for seconds, job, due in session.rows("kept_intervals", after=after, limit=limit)
    ]


def kept_documents(session: Session, after: tuple[str, str] | None, limit: int) -> list[KeptDocument]:
    """Documents of all namespaces in order."""
    namespace, key = after or ("", "")
    rows = session.rows("kept_documents", namespace=namespace, key=key, beyond=int(after is not None), limit=limit)
    return [KeptDocument(row[0], document_of(*row[1:])) for row in rows]


def taken(session: Session, jobs: Sequence[Job]) -> dict[str, str]:
    """Who would be in the way of which."""
    asked = [
        (job.id, job.name, KIND_CODES[job.key.kind], job.key.text)
        if job.key is not None and _holds(job)
        else (job.id, "", 0, None)
        for job in jobs
    ]
    found = {
        jobs[place].id: by_key if by_id is None else by_id
        for place, by_id, by_key in session.loaded("holders", jobs=as_json(asked))
        if by_id is not None or by_key is not None
    }
    ids = dict(zip(found.values(), (job.id for job in full_jobs(session, list(found.values()))), strict=True)) if found else {}
    return {job_id: ids[seq] for job_id, seq in found.items()}


def restore(session: Session, cargo: Cargo, expect: Mark, now: int) -> None:
    """Put everything in as it was."""
    _begin(session, expect)
    for job in cargo.jobs:
        _restore_job(session, job, now)
    for one in cargo.intervals:
        due = None if one.due_at is None else to_micros(one.due_at)
        interval = one.interval
        session.rows(
            "restore_interval", schedule=interval.schedule, seconds=interval.seconds, job=template(interval.job), due=due
        )
    for schedule in cargo.schedules:
        schedules.write(session, "restore_schedule", schedule)
    for kept_document in cargo.documents:
        document = kept_document.document
        session.rows(
            "restore_document",
            namespace=kept_document.namespace,
            key=document.key,
            value=encode(document.value, _NO_LIMIT),
            revision=document.revision,
            expires_at=None if document.expires_at is None else to_micros(document.expires_at),
        )
    session.rows("mark_open", open=0)


def take_out(session: Session, cargo: Cargo, expect: Mark) -> None:
    """Remove everything that is named."""
    _begin(session, expect)
    seqs = session.loaded("at_rest", ids=as_json([job.id for job in cargo.jobs]))
    if seqs:
        remove(session, seqs)
    for interval in cargo.intervals:
        session.rows("interval_delete", schedule=interval.interval.schedule)
    for schedule in cargo.schedules:
        schedules.delete(session, schedule.name)
    for one in cargo.documents:
        session.rows("document_delete", namespace=one.namespace, key=one.document.key)
    session.rows("mark_open", open=0)


def _begin(session: Session, expect: Mark) -> None:
    if mark(session) != expect:
        raise Conflict("the move has changed under way: is `treadle move` run twice?")
    session.rows("mark_open", open=1)


def _holds(job: Job) -> bool:
    return job.key is not None and (job.key.kind == "idempotency" or job.state not in FINISHED)


def _restore_job(session: Session, job: Job, now: int) -> None:
    run_at = to_micros(job.run_at)
    long = len(job.payload_json) > INLINE
    match job.state:
        case State.DONE:
            state = DONE
        case State.DEAD:
            state = DEAD
        case _:
            state = READY if run_at <= now else WAITING
    try:
        [(made, seq)] = session.rows(
            "restore_job",
            id=job.id,
            queue=job.queue,
            name=job.name,
            payload=None if long else job.payload_json,
            state=state,
            priority=job.priority,
            run_at=run_at,
            created_at=to_micros(job.created_at),
            started_at=None if job.started_at is None else to_micros(job.started_at),
            finished_at=None if job.finished_at is None else to_micros(job.finished_at),
            attempts=job.attempts,
            max_attempts=job.max_attempts,
            interruptions=job.interruptions,
            last_error=job.last_error,
            key_kind=0 if job.key is None else KIND_CODES[job.key.kind],
            key=None if job.key is None else job.key.text,
            schedule=job.schedule,
            note=job.note,
        )
    except sqlite3.IntegrityError as error:
        raise Conflict(f"job {job.id} ({job.name}) cannot be stored here: another job holds its key") from error
    if not made:
        return
    if long:
        store_long(session, [(seq, job.payload_json)])
    if job.failures:
        failures = [
            (one.attempt, one.worker, to_micros(one.started_at), to_micros(one.ended_at), one.error) for one in job.failures
        ]
        session.rows("restore_failures", job=seq, failures=as_json(failures))
    session.arrived = session.arrived or job.state is State.PENDING
