"""The executor: runs one attempt and says what it became, whatever the handler does (E11, E13, E14, E23)."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any

from treadle.core.job import Job
from treadle.core.outcome import Dead, Done, Outcome, RetryAfter
from treadle.core.profile import Profile
from treadle.core.signals import Signal
from treadle.core.store import Claim
from treadle.core.transitions import on_failure, on_interrupted
from treadle.engine.execution import STOPPED, Context, Execution
from treadle.engine.threads import HandlerThreads

_DONE = Done()


class Executor:
    """Calls handlers. The state of an attempt is its `Execution`'s; here is only how many threads are taken."""

    def __init__(
        self,
        profile: Profile,
        tasks: Any,
        logger: logging.Logger,
        settle: Callable[[Execution, Outcome], None],
        extend: Callable[[Claim, float], Awaitable[bool]],
        torn_down: Callable[[], bool],
    ) -> None:
        self._profile = profile
        self._tasks = tasks
        self._logger = logger
        self._settle = settle
        self._extend = extend
        self._torn_down = torn_down
        self._threads = HandlerThreads()
        self.threads_taken = 0

    async def run(self, execution: Execution) -> None:
        """Run the handler once and settle what became of it.

        Whatever the handler raises, SystemExit and KeyboardInterrupt included, fails the attempt and goes no further.
        """
        entry = execution.entry
        try:
            payload: Any = execution.job.payload
            if entry.convert is not None:
                payload = entry.convert(payload)
            arguments: tuple[Any, ...] = (payload,)
            if entry.takes_context:
                arguments = (payload, Context(execution, self._tasks, self._logger, self._extend))
            if entry.is_async:
                await entry.function(*arguments)
                raised = None
            else:
                raised = await self._in_thread(execution, arguments)
        except BaseException as error:
            raised = error
        outcome = _DONE if raised is None else self._judge(execution, raised)
        if outcome is None:
            raise asyncio.CancelledError  # the loop is being torn down around it, and nothing can be written any more
        self._settle(execution, outcome)

    def timeout(self, execution: Execution) -> float | None:
        """The seconds that the attempt may take."""
        own = execution.entry.timeout
        return self._profile.timeout if own is None else own

    def timed_out(self, execution: Execution) -> Outcome:
        """What an attempt becomes that ran past its timeout (E23)."""
        return self._failed(execution, TimeoutError(f"ran longer than its timeout of {self.timeout(execution):g} s"))

    def _judge(self, execution: Execution, error: BaseException) -> Outcome | None:
        if execution.cut_short == STOPPED:
            return on_interrupted(execution.job, STOPPED)
        if execution.cut_short is not None:
            return self.timed_out(execution)
        if isinstance(error, asyncio.CancelledError) and self._torn_down():
            return None
        return self._failed(execution, error)

    def _failed(self, execution: Execution, error: BaseException) -> Outcome:
        job = execution.job
        policy = execution.entry.retry or self._profile.retry
        try:
            outcome = on_failure(job, policy, error, random.random)
        except Exception as refused:  # a retry function of the user's own may raise anything
            self._logger.warning("the retry policy of %r failed, the worker's own is used: %r", job.name, refused)
            outcome = on_failure(job, self._profile.retry, error, random.random)
        self._tell(job, outcome, error)
        return outcome

    def _tell(self, job: Job, outcome: Outcome, error: BaseException) -> None:
        """Log a failed attempt, with its traceback unless the handler ended it on purpose."""
        trace = None if isinstance(error, (Signal, TimeoutError)) else error
        of = f"attempt {job.attempts} of {job.max_attempts}"
        match outcome:
            case RetryAfter(seconds=seconds, error=text):
                self._logger.warning(
                    "%s %s failed at %s, again in %g s: %s", job.name, job.id, of, seconds, text, exc_info=trace
                )
            case Dead(error=text):
                self._logger.error("%s %s is dead at %s: %s", job.name, job.id, of, text, exc_info=trace)
            case _:
                self._logger.debug("%s %s was put off at %s", job.name, job.id, of)

    async def _in_thread(self, execution: Execution, arguments: tuple[Any, ...]) -> BaseException | None:
        """Call a plain handler in a thread; answers what it raised (E11)."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[BaseException | None] = loop.create_future()

        def done(result: object, error: BaseException | None) -> None:
            if error is None and inspect.isawaitable(result):
                if inspect.iscoroutine(result):
                    result.close()
                error = TypeError("the handler returned an awaitable; declare it with async def")
            try:
                loop.call_soon_threadsafe(resolve, error)
            except RuntimeError:
                pass  # the loop has closed; the job is left to its lease

        def resolve(error: BaseException | None) -> None:
            execution.in_thread = False
            self.threads_taken -= 1
            if not ended.done():
                ended.set_result(error)

        execution.in_thread = True
        self.threads_taken += 1
        self._threads.run(lambda: execution.entry.function(*arguments), done)
        return await ended
