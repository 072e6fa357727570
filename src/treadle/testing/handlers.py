"""Calling a handler as a worker would, without a worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from treadle.core.job import Job, NewJob, State
from treadle.core.payload import decode, encode
from treadle.core.store import Claim
from treadle.engine.execution import Context, Execution
from treadle.engine.registry import Entry
from treadle.tasks.app import Tasks
from treadle.tasks.handler import Handler
from treadle.tasks.shape import shape_of
from treadle.testing.clock import START
from treadle.testing.factory import WORKER, uuid7


async def run_handler(
    handler: Handler[Any, Any, Any] | Callable[..., Any],
    payload: object = None,
    *,
    attempt: int = 1,
    max_attempts: int = 5,
    name: str | None = None,
    tasks: Tasks | None = None,
    aborted: str | None = None,
) -> Any:
    """Call the handler once with that payload and a real context, and answer what it returns or raise what it raises.

    The payload goes through JSON and the handler's annotated type, as on its way through a store. A plain function runs
    in a thread. `attempt` is what `ctx.attempt` tells, `tasks` what `ctx.tasks` is (left out: one on a memory store),
    and `aborted` a reason with which `ctx.aborted` is set from the start. `ctx.extend_lease` answers True.
    """
    function = handler.function if isinstance(handler, Handler) else handler
    if name is None:
        name = handler.name if isinstance(handler, Handler) else str(getattr(handler, "__name__", "handler"))
    shape = shape_of(function, name)
    encoded = encode(payload if shape.codec is None else shape.codec.encode(payload))
    value: Any = decode(encoded) if shape.codec is None else shape.codec.decode(decode(encoded))
    arguments: tuple[Any, ...] = (value,)
    if shape.takes_context:
        entry = Entry(name, function, shape.is_async, shape.takes_context)
        job = _job(name, encoded, attempt, max_attempts)
        arguments = (value, _context(job, entry, tasks or Tasks("memory:"), aborted))
    if shape.is_async:
        return await function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def _job(name: str, payload_json: str, attempt: int, max_attempts: int) -> Job:
    stored = NewJob(uuid7(1), name, payload_json).stored(START, START)
    return replace(stored, state=State.RUNNING, attempts=attempt, max_attempts=max_attempts, started_at=START, worker=WORKER)


def _context(job: Job, entry: Entry, tasks: Tasks, aborted: str | None) -> Context:
    execution = Execution(job, Claim(job.id, "token-of-a-test"), entry, 0.0)
    if aborted is not None:
        execution.aborted.set(aborted)
    return Context(execution, tasks, logging.getLogger("treadle"), _extended)


def _extended(claim: Claim, seconds: float) -> Awaitable[bool]:
    """The lease that a test's handler holds is always there to be extended."""
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    answer.set_result(True)
    return answer
