"""What a move puts in or takes out, as parameters of statements: JSON arrays with a row for each thing (S13)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from treadle.core.job import Job
from treadle.core.payload import encode
from treadle.core.schedule import Schedule
from treadle.core.transfer import Cargo, KeptDocument, KeptInterval
from treadle.stores.postgres.rows import storable
from treadle.stores.postgres.templates import text_of

_NO_LIMIT = 1 << 62


def restoring(cargo: Cargo) -> list[tuple[str, str]]:
    """The statements that put the cargo in, each with its one parameter."""
    things: tuple[tuple[str, list[dict[str, Any]]], ...] = (
        ("restore_jobs", [_job(job) for job in cargo.jobs]),
        ("restore_intervals", [_interval(one) for one in cargo.intervals]),
        ("restore_schedules", [_schedule(one) for one in cargo.schedules]),
        ("restore_documents", [_document(one) for one in cargo.documents]),
    )
    return [(name, json.dumps(items, ensure_ascii=False)) for name, items in things if items]


def removing(cargo: Cargo) -> Iterator[tuple[str, Sequence[Sequence[str]]]]:
    """The statements that take it out, each with its parameters."""
    if cargo.jobs:
        yield "remove_jobs", [[job.id for job in cargo.jobs]]
    if cargo.intervals:
        yield "remove_intervals", [[one.interval.schedule for one in cargo.intervals]]
    if cargo.schedules:
        yield "remove_schedules", [[one.name for one in cargo.schedules]]
    if cargo.documents:
        yield "remove_documents", [[one.namespace for one in cargo.documents], [one.document.key for one in cargo.documents]]


def _job(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "queue": job.queue,
        "name": job.name,
        "payload": job.payload_json,
        "state": job.state.value,
        "priority": job.priority,
        "run_at": _text(job.run_at),
        "created_at": _text(job.created_at),
        "started_at": _text(job.started_at),
        "finished_at": _text(job.finished_at),
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "interruptions": job.interruptions,
        "last_error": None if job.last_error is None else storable(job.last_error),
        "key_kind": None if job.key is None else job.key.kind,
        "key": None if job.key is None else job.key.text,
        "schedule": job.schedule,
        "note": None if job.note is None else storable(job.note),
        "failures": [
            {
                "attempt": one.attempt,
                "worker": storable(one.worker),
                "started_at": _text(one.started_at),
                "ended_at": _text(one.ended_at),
                "error": storable(one.error),
            }
            for one in job.failures
        ],
    }


def _interval(kept: KeptInterval) -> dict[str, Any]:
    interval = kept.interval
    return {
        "schedule": interval.schedule,
        "seconds": interval.seconds,
        "template": text_of(interval.job),
        "due_at": _text(kept.due_at),
    }


def _schedule(schedule: Schedule) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "expression": schedule.expression,
        "tz": schedule.tz,
        "seconds": schedule.seconds,
        "template": text_of(schedule.job),
        "next_at": _text(schedule.next_at),
        "last_at": _text(schedule.last_at),
        "paused": schedule.paused,
        "revision": schedule.revision,
    }


def _document(kept: KeptDocument) -> dict[str, Any]:
    document = kept.document
    return {
        "namespace": kept.namespace,
        "key": document.key,
        "value": encode(document.value, _NO_LIMIT),
        "revision": document.revision,
        "expires_at": _text(document.expires_at),
    }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
