"""A job as JSON: one shape, wherever a job is printed (E1, L8)."""

from __future__ import annotations

from typing import Any

from treadle.cli.ages import iso
from treadle.core.errors import StoreError
from treadle.core.job import Job
from treadle.core.payload import JSON


def job_document(job: Job) -> dict[str, Any]:
    """The fields of E1, the note, and the record of each unsuccessful attempt."""
    return {
        "id": job.id,
        "queue": job.queue,
        "name": job.name,
        "payload": _payload(job),
        "state": job.state.value,
        "priority": job.priority,
        "run_at": iso(job.run_at),
        "created_at": iso(job.created_at),
        "started_at": iso(job.started_at),
        "finished_at": iso(job.finished_at),
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "interruptions": job.interruptions,
        "last_error": job.last_error,
        "dedupe_key": job.dedupe_key,
        "idempotency_key": job.idempotency_key,
        "worker": job.worker,
        "lease_until": iso(job.lease_until),
        "schedule": job.schedule,
        "note": job.note,
        "failures": [
            {
                "attempt": failure.attempt,
                "worker": failure.worker,
                "started_at": iso(failure.started_at),
                "ended_at": iso(failure.ended_at),
                "error": failure.error,
            }
            for failure in job.failures
        ],
    }


def _payload(job: Job) -> JSON:
    try:
        return job.payload
    except ValueError:
        raise StoreError(f"job {job.id} holds a payload that is no JSON: {job.payload_json[:80]!r}") from None
