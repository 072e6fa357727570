"""The options of an enqueue, checked and turned into a job to be stored (E4, E8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict

from treadle.core import draft, job as stored
from treadle.core.errors import InvalidArgument
from treadle.core.job import Key
from treadle.core.payload import encode
from treadle.core.policies.limits import (
    checked_delay,
    checked_key,
    checked_max_attempts,
    checked_moment,
    checked_name,
    checked_priority,
    checked_queue,
)


class EnqueueOptions(TypedDict, total=False):
    """What can be said of a job beside its name and payload."""

    delay: float | timedelta | None
    run_at: datetime | None
    idempotency_key: str | None
    dedupe_key: str | None
    max_attempts: int | None
    priority: int
    queue: str | None
    connection: Any


def new_job(
    id: str,
    name: str,
    payload: object,
    limit: int,
    default_queue: str,
    *,
    delay: float | timedelta | None = None,
    run_at: datetime | None = None,
    idempotency_key: str | None = None,
    dedupe_key: str | None = None,
    max_attempts: int | None = None,
    priority: int = 0,
    queue: str | None = None,
) -> stored.NewJob:
    """The job, or `InvalidArgument`, with nothing stored."""
    if delay is not None and run_at is not None:
        raise InvalidArgument("delay and run_at exclude each other; give one of them")
    if idempotency_key is not None and dedupe_key is not None:
        raise InvalidArgument("idempotency_key and dedupe_key exclude each other; give one of them")
    key = None
    if idempotency_key is not None:
        key = Key("idempotency", checked_key(idempotency_key, "idempotency_key"))
    elif dedupe_key is not None:
        key = Key("dedupe", checked_key(dedupe_key, "dedupe_key"))
    return draft.new_job(
        id,
        checked_name(name),
        encode(payload, limit),
        default_queue if queue is None else checked_queue(queue),
        0.0 if delay is None else checked_delay(delay),
        None if run_at is None else checked_moment(run_at),
        0 if priority == 0 and type(priority) is int else checked_priority(priority),
        None if max_attempts is None else checked_max_attempts(max_attempts),
        key,
    )


@dataclass(frozen=True, slots=True)
class NewJob:
    """One job of an `enqueue_many`, as a value with typed fields; a mapping of the same names does as well (E9)."""

    name: str
    payload: Any = None
    delay: float | timedelta | None = None
    run_at: datetime | None = None
    idempotency_key: str | None = None
    dedupe_key: str | None = None
    max_attempts: int | None = None
    priority: int = 0
    queue: str | None = None


FIELDS = tuple(NewJob.__dataclass_fields__)
_KNOWN = frozenset(FIELDS)


def spread(entry: Mapping[str, Any] | NewJob) -> dict[str, Any]:
    """The entry of a list as a dictionary, its names checked."""
    if isinstance(entry, NewJob):
        return {name: getattr(entry, name) for name in FIELDS}
    if not isinstance(entry, Mapping):
        raise InvalidArgument(f"it must be a mapping or a NewJob, not {type(entry).__name__}")
    options = dict(entry)
    if not options.keys() <= _KNOWN:
        unknown = next(name for name in options if name not in _KNOWN)
        raise InvalidArgument(f"unknown option {unknown!r}; known are {', '.join(FIELDS)}")
    if "name" not in options:
        raise InvalidArgument("it has no name")
    return options
