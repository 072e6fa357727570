"""The shapes of the functions service on the wire: what its routes answer and what its client returns (F6, F10, F12)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Status = Literal["pending", "running", "completed", "dead"]
STATUSES: tuple[Status, ...] = ("pending", "running", "completed", "dead")


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the functions service. Times are aware and in UTC.

    `attempts` counts the calls begun. `scheduled_at` is when the job is or was due, `started_at` when the latest call began,
    `completed_at` when the function answered. `response_status` is the HTTP status of that answer, whatever it was (F5).
    `error` says why the latest call failed; None before the first failure, and once a call has succeeded.
    """

    id: str
    function: str
    status: Status
    attempts: int
    max_attempts: int
    error: str | None
    payload: Any
    scheduled_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    response_status: int | None


@dataclass(frozen=True, slots=True)
class CronJob:
    """A cron entry: each firing enqueues a job of the function. `schedule` has six fields, seconds first, and is in UTC.

    `last_run` and `next_run` are None until it has fired once (F12).
    """

    name: str
    schedule: str
    function: str
    payload: Any
    last_run: datetime | None
    next_run: datetime | None


@dataclass(frozen=True, slots=True)
class Requeued:
    """How many dead jobs were put back to pending (F11)."""

    requeued: int
