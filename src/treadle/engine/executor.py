"""The executor: runs one attempt and says what it became, whatever the handler does (E11, E13, E14, E23)."""

from __future__ import annotations

import asyncio
import functools
import inspect
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from treadle.core.job import Job
from treadle.core.outcome import Dead, Done, Outcome, RetryAfter
from treadle.core.policies.retry import Exponential
from treadle.core.signals import Signal
from treadle.core.store import Claim
from treadle.core.transitions import asked_for, error_text, on_failed_attempt, on_failure, on_interrupted
from treadle.engine.execution import STOPPED, Context, CutShort, Execution, in_handler
from treadle.engine.fields import fields
from treadle.engine.setup import Setup
from treadle.engine.threads import HandlerThreads

LAST_RESORT = Exponential(1.0, 900.0)  # where every policy that the application gave fails
_DONE = Done()


class Executor:
    """Calls handlers. The state of an attempt is its `Execution`'s; here is only how many threads are taken."""

    def __init__(
        self,
        setup: Setup,
        tasks: Any,
        settle: Callable[[Execution, Outcome | None], None],
        extend: Callable[[Claim, float], Awaitable[bool]],
        torn_down: Callable[[], bool],
    ) -> None:
        self._setup = setup
        self._tasks = tasks
        self._logger = setup.logger
        self._settle = settle
        self._extend = extend
        self._torn_down = torn_down
        self._threads = HandlerThreads()
        self.threads_taken = 0

    async def run(self, execution: Execution) -> None:
        """Run the handler once and settle what became of it, with None where the loop is being torn down around it.

        With None too, and without calling the handler, where the lease was lost before (E20). Whatever the handler raises,
        SystemExit and KeyboardInterrupt included, fails the attempt and goes no further. What it returns is ignored (E13), but
        for a face's `Done` with a note.
        """
        entry, done = execution.entry, _DONE
        execution.begun = True
        try:
            arguments: tuple[Any, ...] = ()
            if entry.takes_payload:
                payload: Any = execution.job.payload
                arguments = (payload if entry.convert is None else entry.convert(payload),)
            if entry.takes_context:
                arguments = (*arguments, Context(execution, self._tasks, self._logger, self._extend))
            if execution.lost:  # looked at after the sign was made for the handler, which tells it from now on
                self._settle(execution, None)
                return
            if entry.is_async:
                returned = await entry.function(*arguments)
                done = returned if type(returned) is Done else _DONE
                raised = None
            else:
                raised = await self._in_thread(execution, arguments)
        except BaseException as error:
            raised = error
        if execution.settled:
            return  # abandoned meanwhile, and nobody asks any more what it became
        in_time = execution.timer is None or not self._too_late(execution)
        outcome = done if raised is None and in_time else self._judge(execution, raised)
        raised = None  # or the error, whose traceback holds this frame, would keep both until a garbage collection
        self._settle(execution, outcome)
        if outcome is None:
            raise asyncio.CancelledError

    def timeout(self, execution: Execution) -> float | None:
        """The seconds that the attempt may take."""
        own = execution.entry.timeout
        return self._setup.profile.timeout if own is None else own

    def timed_out(self, execution: Execution) -> Outcome:
        """What an attempt becomes that ran past its timeout (E23)."""
        return self._failed(execution, TimeoutError(f"ran longer than its timeout of {self.timeout(execution):g} s"))

    def _too_late(self, execution: Execution) -> bool:
        """Whether it ended past its timeout all the same, by swallowing its cancellation or by holding the loop up (E23)."""
        if execution.cut_short is not None:
            return execution.cut_short is CutShort.TIMEOUT
        timeout = self.timeout(execution)
        if timeout is None or not execution.entry.is_async:  # a plain handler may have ended long before the loop hears of it
            return False
        return asyncio.get_running_loop().time() - execution.started > timeout

    def _judge(self, execution: Execution, error: BaseException | None) -> Outcome | None:
        if execution.cut_short is CutShort.STOP and not asked_for(error):
            return on_interrupted(execution.job, STOPPED)
        if error is None or execution.cut_short is CutShort.TIMEOUT:
            return self.timed_out(execution)
        if isinstance(error, asyncio.CancelledError) and self._torn_down():
            return None
        return self._failed(execution, error)

    def _failed(self, execution: Execution, error: BaseException) -> Outcome:
        outcome = self._decided(execution, error)
        with suppress(Exception):  # a log filter of the application's own may raise, and must not cost the job its end
            self._tell(execution.job, outcome, error)
        return outcome

    def _decided(self, execution: Execution, error: BaseException) -> Outcome:
        """What the failure becomes, by the first policy that works: the application's own may raise, or answer no delay."""
        job, own = execution.job, execution.entry.retry or self._setup.profile.retry
        try:
            return on_failure(job, own, error, random.random)
        except Exception as refused:
            with suppress(Exception):
                self._logger.warning(
                    "the retry policy of %r failed, another is used: %s", job.name, error_text(refused), extra=fields(job)
                )
        try:
            return on_failed_attempt(job, self._setup.profile.retry, error_text(error), random.random)
        except Exception:
            return on_failed_attempt(job, LAST_RESORT, error_text(error), random.random)

    def _tell(self, job: Job, outcome: Outcome, error: BaseException) -> None:
        """Log a failed attempt, with its traceback unless the handler ended it on purpose, or nobody raised it: a timeout."""
        trace = None if isinstance(error, Signal) or error.__traceback__ is None else error
        of = f"attempt {job.attempts} of {job.max_attempts}"
        extra = fields(job)
        match outcome:
            case RetryAfter(seconds=seconds, error=text):
                self._logger.warning(
                    "%s %s failed at %s, again in %g s: %s", job.name, job.id, of, seconds, text, exc_info=trace, extra=extra
                )
            case Dead(error=text):
                self._logger.error("%s %s is dead at %s: %s", job.name, job.id, of, text, exc_info=trace, extra=extra)
            case _:
                self._logger.debug("%s %s was put off at %s", job.name, job.id, of, extra=extra)

    async def _in_thread(self, execution: Execution, arguments: tuple[Any, ...]) -> BaseException | None:
        """Call a plain handler in a thread; answers what it raised (E11)."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[BaseException | None] = loop.create_future()

        def done(result: object, error: BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(resolve, error)
            except RuntimeError:
                pass  # the loop has closed; the job is left to its lease

        def resolve(error: BaseException | None) -> None:
            self.threads_taken -= 1
            if not ended.done():
                ended.set_result(error)

        self._threads.run(functools.partial(_called, execution, arguments), done)
        self.threads_taken += 1  # only now: the system may have refused a thread
        return await ended


def _called(execution: Execution, arguments: tuple[Any, ...]) -> None:
    """Call a plain handler, and refuse what it returns where that means that nothing of it has run yet."""
    in_handler.set(execution)  # in the copy of the context that the thread runs this in
    result = execution.entry.function(*arguments)
    kind = type(result)  # not `isinstance`, which asks the value itself: a proxy may raise
    if issubclass(kind, (GeneratorType, AsyncGeneratorType)):
        raise TypeError("the handler returned a generator, of which nothing has run; let it do its work and return")
    if issubclass(kind, Awaitable):
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError("the handler returned an awaitable; declare it with async def")
