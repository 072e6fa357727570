"""Every operation of the client as a value, for both of its faces (F9 to F12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Generic, TypeVar

from treadle.client import answers, reading
from treadle.client.body import json_object, json_value
from treadle.client.path import below, segment, with_query
from treadle.client.wire import CronJob, Job, Requeued, Status

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """A request, how its answer is read, and whether it may be sent again when it may have been carried out already.

    `path` is encoded and stands behind the client's URL. `timeout` is the client's where it is None.
    """

    method: str
    path: str
    read: Callable[[httpx2.Response], T]
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False
    timeout: float | None = None


def enqueue_job(
    name: str, payload: object, delay_secs: float | timedelta, max_attempts: int | None, idempotency_key: str | None
) -> Operation[Job]:
    """Enqueue; under a key it may be repeated, since the key's job is answered then and none is made."""
    delay = delay_secs.total_seconds() if isinstance(delay_secs, timedelta) else delay_secs
    fields: dict[str, object] = {"payload": payload, "delay_secs": delay}
    if max_attempts is not None:
        fields["max_attempts"] = max_attempts
    headers = dict(_JSON)
    if idempotency_key is not None:
        headers["idempotency-key"] = _header("the idempotency key", idempotency_key)
    return Operation(
        "POST",
        f"/v1/functions/{_function(name)}/jobs",
        answers.data(reading.job),
        content=json_object(**fields),
        headers=headers,
        repeatable=idempotency_key is not None,
    )


def get_job(id: str) -> Operation[Job]:
    """One job."""
    return Operation("GET", f"/v1/functions/jobs/{_job(id)}", answers.data(reading.job), repeatable=True)


def list_jobs(status: Status | None, limit: int) -> Operation[list[Job]]:
    """The newest jobs."""
    path = with_query("/v1/functions/jobs", status=status, limit=limit)
    return Operation("GET", path, answers.data(reading.many(reading.job)), repeatable=True)


def list_dead(limit: int) -> Operation[list[Job]]:
    """The newest dead jobs."""
    path = with_query("/v1/functions/jobs/dlq", limit=limit)
    return Operation("GET", path, answers.data(reading.many(reading.job)), repeatable=True)


def retry_job(id: str) -> Operation[Job]:
    """Revive a dead job; a repetition could meet it dead again, and give it an attempt that nobody asked for."""
    return Operation("POST", f"/v1/functions/jobs/{_job(id)}/retry", answers.data(reading.job))


def requeue_dead() -> Operation[Requeued]:
    """Revive the oldest dead jobs; a repetition would revive the next ones."""
    return Operation("POST", "/v1/functions/jobs/dlq/requeue", answers.data(reading.requeued))


def create_cron_job(name: str, schedule: str, function: str, payload: object) -> Operation[CronJob]:
    """Create a cron entry; a repetition would find its own name in use."""
    content = json_object(name=name, schedule=schedule, function=function, payload=payload)
    return Operation("POST", "/v1/functions/cron", answers.data(reading.cron_job), content=content, headers=_JSON)


def list_cron_jobs() -> Operation[list[CronJob]]:
    """All cron entries."""
    return Operation("GET", "/v1/functions/cron", answers.data(reading.many(reading.cron_job)), repeatable=True)


def delete_cron_job(name: str) -> Operation[None]:
    """Delete a cron entry; a repetition would not find it, or find what somebody made anew."""
    return Operation(
        "DELETE", f"/v1/functions/cron/{segment('the name of the cron entry', name)}", answers.data(reading.nothing)
    )


def invoke(
    name: str, path: str, method: str, payload: object, headers: Mapping[str, str] | None, timeout: float | None
) -> Operation[httpx2.Response]:
    """Call a function directly (F3); what a second call would do only the function knows."""
    sent = {key.lower(): value for key, value in (headers or {}).items()}
    content = payload if isinstance(payload, bytes) else None
    if payload is not None and content is None:
        content, sent = json_value("payload", payload), _JSON | sent
    return Operation(
        method.upper(),
        f"/v1/functions/{_function(name)}/invoke{below('the path', path)}",
        answers.as_it_is,
        content=content,
        headers=sent,
        timeout=timeout,
    )


def _function(name: str) -> str:
    return segment("the function's name", name)


def _job(id: str) -> str:
    return segment("the job's id", id)


def _header(what: str, value: object) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or value.strip() != value or not value:
        raise ValueError(f"{what} is sent as a header: it must be printable ASCII without spaces around it, not {value!r}")
    return value
