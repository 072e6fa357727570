"""Jobs that are not stored yet, as text: the templates of intervals and schedules."""

from __future__ import annotations

from typing import TypeAlias

from treadle.core.job import Key, KeyKind, NewJob

Template: TypeAlias = "tuple[str, str, str, str, float, int, int | None, tuple[KeyKind, str] | None, str | None]"


def template_of(job: NewJob) -> Template:
    """The job as what JSON can hold; a template has no due time of its own."""
    key = None if job.key is None else (job.key.kind, job.key.text)
    return (job.id, job.name, job.payload_json, job.queue, job.delay, job.priority, job.max_attempts, key, job.schedule)


def job_of(template: Template) -> NewJob:
    """What `template_of` was given."""
    job_id, name, payload, queue, delay, priority, max_attempts, key, schedule = template
    return NewJob(
        job_id, name, payload, queue, delay, None, priority, max_attempts, None if key is None else Key(*key), schedule
    )
