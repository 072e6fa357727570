"""Registering what a process runs: handlers, intervals and cron schedules (E11, T1, T2, T5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from treadle.core import job as stored
from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import checked_duration, checked_max_attempts, checked_name, checked_queue
from treadle.core.policies.retry import RetryPolicy, retry_policy
from treadle.core.schedule import Interval
from treadle.engine.registry import Entry, Registry
from treadle.tasks.handler import Handler
from treadle.tasks.options import new_job
from treadle.tasks.shape import shape_of

if TYPE_CHECKING:
    from treadle.core.cron import Cron
    from treadle.tasks.app import Tasks

Payload = TypeVar("Payload")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")
Seconds = float | timedelta


class Registration:
    """What is registered in code before `start`."""

    _max_payload: int

    def __init__(self) -> None:
        self._registry = Registry()
        self._intervals: dict[str, Interval] = {}
        self._crons: dict[str, tuple[Cron, stored.NewJob]] = {}

    @property
    def _started(self) -> bool:
        """Whether a worker of it runs, in whatever event loop."""
        raise NotImplementedError

    @property
    def names(self) -> Sequence[str]:
        """The names that have a handler here, in order of registration."""
        return [*self._registry.names]

    def handler(
        self,
        name: str,
        *,
        max_attempts: int | None = None,
        timeout: Seconds | None = None,
        retry: RetryPolicy | Callable[[int], Seconds] | None = None,
        queue: str | None = None,
    ) -> Callable[[Callable[Concatenate[Payload, Rest], Result]], Handler[Payload, Rest, Result]]:
        """Register the decorated function, `async def` or plain `def`, for jobs of that name (E11)."""
        checked_name(name)  # here already: `@tasks.handler` without its parentheses would register nothing

        def register(function: Callable[Concatenate[Payload, Rest], Result]) -> Handler[Payload, Rest, Result]:
            return self.handle(name, function, max_attempts=max_attempts, timeout=timeout, retry=retry, queue=queue)

        return register

    def handle(
        self,
        name: str,
        function: Callable[Concatenate[Payload, Rest], Result],
        *,
        max_attempts: int | None = None,
        timeout: Seconds | None = None,
        retry: RetryPolicy | Callable[[int], Seconds] | None = None,
        queue: str | None = None,
    ) -> Handler[Payload, Rest, Result]:
        """`handler` without the decorator. Registering a name again replaces its handler.

        Raises `InvalidArgument`, or `MissingExtra` where the payload's annotated type needs one (E11).
        """
        checked_name(name)
        function = function.function if isinstance(function, Handler) else function
        shape = shape_of(function, name)
        self._registry.add(
            Entry(
                name=name,
                function=function,
                is_async=shape.is_async,
                takes_context=shape.takes_context,
                convert=None if shape.codec is None else shape.codec.decode,
                max_attempts=None if max_attempts is None else checked_max_attempts(max_attempts),
                timeout=None if timeout is None else checked_duration(timeout, "timeout"),
                retry=None if retry is None else retry_policy(retry),
                queue=None if queue is None else checked_queue(queue),
            )
        )
        return Handler(cast("Tasks", self), name, function, shape.codec)

    def every(self, name: str, seconds: Seconds, payload: object = None) -> None:
        """Run the handler of that name at once, and again `seconds` after each run has ended (T1 to T4).

        Registering the same name again replaces the interval and the payload, from the next copy on. Raises
        `InvalidArgument` for an interval that is not greater than zero, without a handler, and after `start`.
        """
        interval = checked_duration(seconds, "the interval")
        checked_name(name)
        if name not in self._registry:
            raise InvalidArgument(f"every({name!r}) needs the handler of that name to be registered first")
        if self._started:
            raise InvalidArgument(f"every({name!r}) must come before start; the worker already runs")
        template = new_job("", name, payload, self._max_payload, self._queue_of(name))
        entry = Interval.of(interval, template)
        self._intervals[entry.schedule] = entry

    def cron(
        self,
        name: str,
        schedule: str,
        job: str,
        payload: object = None,
        *,
        tz: str = "UTC",
        priority: int = 0,
        max_attempts: int | None = None,
        queue: str | None = None,
    ) -> None:
        """Enqueue `job` at the times of a cron expression of five fields, read as wall-clock time in the zone `tz` (T5 to T13).

        The schedule is stored under `name` at `start`. Registering it again with other times computes its next run anew,
        and nothing fires for the old ones (T9). Raises `InvalidArgument`, naming the field, for an expression that cannot
        be parsed or never comes true, an unknown zone, bad options, and after `start`.
        """
        checked_name(name, "the schedule name")
        if self._started:
            raise InvalidArgument(f"cron({name!r}) must come before start; the worker already runs")
        from treadle.core.cron import Cron  # loads the zone data, which a program without cron needs not

        times = Cron(schedule, tz)
        template = new_job(
            "",
            job,
            payload,
            self._max_payload,
            self._queue_of(job),
            priority=priority,
            max_attempts=max_attempts,
            queue=queue,
        )
        self._crons[name] = (times, template)

    def _queue_of(self, name: object) -> str:
        entry = self._registry.get(name) if isinstance(name, str) else None
        return "default" if entry is None or entry.queue is None else entry.queue
