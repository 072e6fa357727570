"""Templates of jobs, as intervals and schedules keep them: JSON in which the payload stays the text that it is (T13)."""

from __future__ import annotations

import json
from datetime import datetime

from treadle.core.job import Key, NewJob


def text_of(job: NewJob) -> str:
    """The template as JSON."""
    return json.dumps(
        {
            "id": job.id,
            "name": job.name,
            "payload": job.payload_json,
            "queue": job.queue,
            "delay": job.delay,
            "run_at": None if job.run_at is None else job.run_at.isoformat(),
            "priority": job.priority,
            "max_attempts": job.max_attempts,
            "key": None if job.key is None else [job.key.kind, job.key.text],
            "schedule": job.schedule,
        },
        ensure_ascii=False,
    )


def job_of(text: str) -> NewJob:
    """The template that was kept."""
    kept = json.loads(text)
    return NewJob(
        id=kept["id"],
        name=kept["name"],
        payload_json=kept["payload"],
        queue=kept["queue"],
        delay=kept["delay"],
        run_at=None if kept["run_at"] is None else datetime.fromisoformat(kept["run_at"]),
        priority=kept["priority"],
        max_attempts=kept["max_attempts"],
        key=None if kept["key"] is None else Key(*kept["key"]),
        schedule=kept["schedule"],
    )
