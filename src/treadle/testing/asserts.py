"""Asserts for an application's own tests: that a job was enqueued, or was not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from treadle.core.errors import InvalidArgument
from treadle.core.job import Job, State
from treadle.core.payload import decode, encode
from treadle.tasks.app import Tasks

SHOWN = 5
UNFINISHED_STATES = (State.PENDING, State.RUNNING)


class _Anything:
    def __repr__(self) -> str:
        return "ANY"


ANY: Final[Any] = _Anything()
"""The payload that every job has; None would mean a payload of `null`."""

_FIELDS = ("queue", "priority", "run_at", "idempotency_key", "dedupe_key", "max_attempts", "schedule")


async def assert_enqueued(
    tasks: Tasks,
    name: str,
    payload: object = ANY,
    *,
    count: int | None = None,
    states: Sequence[State | str] = UNFINISHED_STATES,
    **fields: object,
) -> Job:
    """The newest stored job of that name, payload and fields; fails with what there is instead.

    `payload` is compared by what it means as JSON. `fields` are `queue`, `priority`, `run_at`, `idempotency_key`,
    `dedupe_key`, `max_attempts` and `schedule`. `count` asks for exactly so many such jobs. Pending and running jobs are
    looked at unless `states` says otherwise. Raises `AssertionError`, or `InvalidArgument` for a field that there is not.
    """
    __tracebackhide__ = True
    found, others = await _sorted(tasks, name, payload, states, fields)
    if not found or (count is not None and len(found) != count):
        wanted = "a job" if count is None else f"{count} jobs"
        raise AssertionError(
            f"expected {wanted} {_wanted(name, payload, fields)} among those that are {_listed(states)}; "
            f"there are {len(found)} such jobs, and {_shown(others)}"
        )
    return found[0]


async def refute_enqueued(
    tasks: Tasks, name: str, payload: object = ANY, *, states: Sequence[State | str] = UNFINISHED_STATES, **fields: object
) -> None:
    """Fail where such a job is stored; the arguments are those of `assert_enqueued`."""
    __tracebackhide__ = True
    found, _ = await _sorted(tasks, name, payload, states, fields)
    if found:
        raise AssertionError(
            f"expected no job {_wanted(name, payload, fields)} among those that are {_listed(states)}; there is {_shown(found)}"
        )


async def _sorted(
    tasks: Tasks, name: str, payload: object, states: Sequence[State | str], fields: dict[str, object]
) -> tuple[list[Job], list[Job]]:
    """The jobs that match, and the other jobs of that name, or of any name where there are none."""
    for field in fields:
        if field not in _FIELDS:
            raise InvalidArgument(f"a job cannot be looked for by {field!r}; known are {', '.join(_FIELDS)}")
    wanted = None if payload is ANY else encode(payload)
    jobs = await tasks.list(states=states)
    found: list[Job] = []
    others: list[Job] = []
    for job in jobs:
        fits = job.name == name and (wanted is None or encode(job.payload) == encode(decode(wanted)))
        fits = fits and all(_value(job, field) == value for field, value in fields.items())
        (found if fits else others).append(job)
    same_name = [job for job in others if job.name == name]
    return found, same_name or others


def _value(job: Job, field: str) -> object:
    value: object = getattr(job, field)
    return value


def _wanted(name: str, payload: object, fields: dict[str, object]) -> str:
    parts = [] if payload is ANY else [f"payload {encode(payload)}"]
    parts += [f"{field} {_text(value)}" for field, value in fields.items()]
    return f"{name!r}" + (f" with {', '.join(parts)}" if parts else "")


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)


def _listed(states: Sequence[State | str]) -> str:
    return " or ".join(sorted(str(state) for state in states))


def _shown(jobs: list[Job]) -> str:
    if not jobs:
        return "no others"
    lines = [
        f"{job.name!r} ({job.state}, queue {job.queue!r}, due {job.run_at.isoformat()}, payload {job.payload_json[:200]})"
        for job in jobs[:SHOWN]
    ]
    more = f" and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else ""
    return "; ".join(lines) + more
