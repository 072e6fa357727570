"""An execution: one attempt while it runs, and what its handler sees of it (E12)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from datetime import timedelta
from enum import Enum, auto
from typing import Any

from treadle.core.job import Job
from treadle.core.policies.limits import checked_duration
from treadle.core.store import Claim
from treadle.engine.abort import Aborted
from treadle.engine.fields import fields
from treadle.engine.registry import Entry

STOPPED = "the worker is stopping"
LOST = "the lease was lost"

in_handler: ContextVar[Execution | None] = ContextVar("treadle_in_handler", default=None)
"""The attempt whose plain handler this thread runs; what the handler has a blocking twin do in another loop inherits it."""


class CutShort(Enum):
    """Why the worker itself ended an attempt."""

    TIMEOUT = auto()
    STOP = auto()


class Execution:
    """The state of one attempt, owned by the worker's loop."""

    __slots__ = (
        "_aborted",
        "begun",
        "claim",
        "cut_short",
        "entry",
        "job",
        "lost",
        "settled",
        "started",
        "task",
        "timer",
        "warned",
    )

    def __init__(self, job: Job, claim: Claim, entry: Entry, started: float) -> None:
        self.job = job
        self.claim = claim
        self.entry = entry
        self.started = started
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.cut_short: CutShort | None = None
        self.begun = False  # whether the handler was called, or is about to be
        self.lost = False  # whether the lease was lost
        self.settled = False
        self.warned = False
        self._aborted: Aborted | None = None

    @property
    def aborted(self) -> Aborted:
        """The handler's sign to end; made when it is first asked for, by the worker's loop and before the handler runs."""
        if self._aborted is None:
            self._aborted = Aborted()
        return self._aborted

    def abort(self, reason: str) -> None:
        """Tell the handler to end, if it looks at the sign at all; from any thread."""
        if self._aborted is not None:
            self._aborted.set(reason)

    def lose(self) -> None:
        """Take note that the lease was lost; from any thread.

        `lost` first, then the sign: who makes the sign looks at `lost` after that, so that one of the two is seen.
        """
        self.lost = True
        self.abort(LOST)


class _JobLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records carry the fields of a job, beside those that the caller gives."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """The record's own `extra` and the job's; the standard adapter would drop the former."""
        return msg, {**kwargs, "extra": {**(self.extra or {}), **(kwargs.get("extra") or {})}}


class Context:
    """What a handler gets beside its payload: its job, the attempt, a logger, the way to enqueue more, and its lease."""

    __slots__ = ("_aborted", "_execution", "_extend", "_loop", "_tasks", "_thread", "log")

    def __init__(
        self,
        execution: Execution,
        tasks: Any,
        logger: logging.Logger,
        extend: Callable[[Claim, float], Awaitable[bool]],
    ) -> None:
        self._execution = execution
        self._aborted = execution.aborted
        self._tasks = tasks
        self._extend = extend
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        job = execution.job
        self.log: logging.LoggerAdapter[logging.Logger] = _JobLog(logger, fields(job))

    @property
    def job(self) -> Job:
        """The job as it was claimed."""
        return self._execution.job

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1 (E3)."""
        return self._execution.job.attempts

    @property
    def tasks(self) -> Any:
        """The `Tasks` that runs this, to enqueue more; plain handlers use `ctx.tasks.sync`."""
        return self._tasks

    @property
    def aborted(self) -> Aborted:
        """Set at the timeout, at a lost lease and at shutdown."""
        return self._aborted

    async def extend_lease(self, seconds: float | timedelta) -> bool:
        """Hold the job for `seconds` from now, or for the worker's lease if that is longer; False if it is no longer held."""
        return await self._extend(self._execution.claim, checked_duration(seconds, "the lease"))

    def extend_lease_sync(self, seconds: float | timedelta) -> bool:
        """`extend_lease` for plain handlers, from their thread. Raises `RuntimeError` within the worker's own loop."""
        if threading.get_ident() == self._thread:
            raise RuntimeError("a blocking call from within the worker's loop; await ctx.extend_lease() there")
        extending = self.extend_lease(seconds)
        try:
            return asyncio.run_coroutine_threadsafe(extending, self._loop).result()
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            extending.close()
            return False  # nothing renews the lease any more, and nobody takes the result
