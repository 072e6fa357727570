"""Data as the service has them on the wire, and the values that the client makes of them."""

from datetime import UTC, datetime
from typing import Any

from treadle.client import CronJob, Job

JOB_ID = "0199c1de-0000-7000-8000-000000000001"
JOB: dict[str, Any] = {
    "id": JOB_ID,
    "function": "send-report",
    "status": "completed",
    "attempts": 2,
    "max_attempts": 3,
    "error": "Function 'send-report' not found",
    "payload": {"month": "2026-10", "items": [1, 2.5, None, "ü"]},
    "scheduled_at": "2026-10-12T15:40:00Z",
    "started_at": "2026-10-12T15:40:05.25Z",
    "completed_at": "2026-10-12T15:40:06.000001Z",
    "response_status": 500,
}
NEW_JOB = JOB | {
    "status": "pending",
    "attempts": 0,
    "error": None,
    "payload": None,
    "started_at": None,
    "completed_at": None,
    "response_status": None,
}
CRON: dict[str, Any] = {
    "name": "nightly",
    "schedule": "0 0 3 * * *",
    "function": "cleanup",
    "payload": {"dry_run": False},
    "last_run": None,
    "next_run": None,
}


def at(*moment: int) -> datetime:
    return datetime(2026, 10, 12, 15, *moment, tzinfo=UTC)


JOB_VALUE = Job(
    id=JOB_ID,
    function="send-report",
    status="completed",
    attempts=2,
    max_attempts=3,
    error="Function 'send-report' not found",
    payload={"month": "2026-10", "items": [1, 2.5, None, "ü"]},
    scheduled_at=at(40),
    started_at=at(40, 5, 250_000),
    completed_at=at(40, 6, 1),
    response_status=500,
)
NEW_JOB_VALUE = Job(JOB_ID, "send-report", "pending", 0, 3, None, None, at(40), None, None, None)
CRON_VALUE = CronJob("nightly", "0 0 3 * * *", "cleanup", {"dry_run": False}, None, None)
