"""The fields that a log record about a job carries, beside its text."""

from __future__ import annotations

from treadle.core.job import Job


def fields(job: Job) -> dict[str, object]:
    """What `extra=` gets: the same three for every record about a job."""
    return {"job_id": job.id, "job_name": job.name, "attempt": job.attempts}
