"""The job: one stored call, its states, and what an enqueue answers (E1, E2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from treadle.core.payload import JSON, decode


class State(StrEnum):
    """Where a job stands. The moves between states are those of E2 and no others."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"


FINISHED = frozenset({State.DONE, State.DEAD})
UNFINISHED = frozenset({State.PENDING, State.RUNNING})

KeyKind = Literal["idempotency", "dedupe", "schedule"]


@dataclass(frozen=True, slots=True)
class Key:
    """A claim to be the only one: an idempotency key holds while the job is stored, the others while it is unfinished.

    It is unique together with the job's name and its kind (E6, E7, E8, T4, T11).
    """

    kind: KeyKind
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The record that an unsuccessful attempt leaves (E15)."""

    attempt: int
    worker: str
    started_at: datetime
    ended_at: datetime
    error: str


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job as the store knew it at one moment. Times are aware and in UTC.

    `max_attempts` is None until the first claim fixes it, where the enqueue left it out (E4).
    """

    id: str
    queue: str
    name: str
    payload_json: str
    state: State
    priority: int
    run_at: datetime
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempts: int = 0
    max_attempts: int | None = None
    interruptions: int = 0
    last_error: str | None = None
    key: Key | None = None
    schedule: str | None = None
    worker: str | None = None
    lease_until: datetime | None = None
    note: str | None = None
    failures: Sequence[Failure] = ()

    @property
    def payload(self) -> JSON:
        """The payload, decoded anew at each reading, so that a handler cannot change what is stored."""
        return decode(self.payload_json)

    @property
    def idempotency_key(self) -> str | None:
        """The idempotency key that the job was enqueued with (E6)."""
        return self.key.text if self.key is not None and self.key.kind == "idempotency" else None

    @property
    def dedupe_key(self) -> str | None:
        """The dedupe key that the job was enqueued with (E7)."""
        return self.key.text if self.key is not None and self.key.kind == "dedupe" else None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be stored, already checked. The id is made by the caller's side, so that repeating an enqueue is safe (E9).

    Due at `run_at` if that is given, else `delay` seconds after the store's own now.
    """

    id: str
    name: str
    payload_json: str = "null"
    queue: str = "default"
    delay: float = 0.0
    run_at: datetime | None = None
    priority: int = 0
    max_attempts: int | None = None
    key: Key | None = None
    schedule: str | None = None

    def stored(self, now: datetime, run_at: datetime) -> Job:
        """The pending job that this becomes when it is stored at `now`, due at `run_at`."""
        return Job(
            id=self.id,
            queue=self.queue,
            name=self.name,
            payload_json=self.payload_json,
            state=State.PENDING,
            priority=self.priority,
            run_at=run_at,
            created_at=now,
            max_attempts=self.max_attempts,
            key=self.key,
            schedule=self.schedule,
        )


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What an enqueue answers: the job's id, whether it is new, and the job as it is stored (E4, E6, E7)."""

    id: str
    created: bool
    job: Job = field(repr=False)
