"""`Tasks`: the library's one object. It holds handlers, intervals and a store, and makes an engine in each event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from treadle.core import job as stored
from treadle.core.clock import Clock
from treadle.core.errors import InvalidArgument
from treadle.core.filter import JobFilter
from treadle.core.job import Enqueued, Job, State
from treadle.core.payload import MAX_PAYLOAD
from treadle.core.policies.limits import (
    checked_delay,
    checked_duration,
    checked_int,
    checked_max_attempts,
    checked_name,
    checked_queue,
    checked_text,
)
from treadle.core.policies.retention import Retention
from treadle.core.policies.retry import RetryPolicy, retry_policy
from treadle.core.schedule import Interval
from treadle.core.store import EnqueueOn, Redriven, Stats, Store
from treadle.engine.clock import EngineClock
from treadle.engine.engine import Engine, Settings
from treadle.engine.ids import new_id
from treadle.engine.operations import Operations, Pruned
from treadle.engine.registry import Entry, Registry
from treadle.stores import open_store
from treadle.tasks import install as lifespan
from treadle.tasks.blocking import SyncTasks
from treadle.tasks.codec import shape_of
from treadle.tasks.handler import Handler
from treadle.tasks.options import NewJob, new_job, spread
from treadle.tasks.profile import CONCURRENCY, GRACE, LIBRARY, POLL_INTERVAL, PRUNE_AFTER

Payload = TypeVar("Payload")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")
Seconds = float | timedelta


class Tasks:
    """Background jobs over one store.

    `store` is a URL (`memory:`, `sqlite:PATH`, ...) or a store object; None means `TREADLE_STORE`, else
    `sqlite:data/tasks.db` (S1). The settings are those of E18; durations are seconds or timedeltas. `retention` and
    `key_retention` are E29, `max_payload` is in bytes (E5), `grace` is how long `stop` waits for running jobs (E24), and
    `migrate=True` lets a Postgres store bring its tables up to date (S4).
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        concurrency: int = CONCURRENCY,
        queues: Iterable[str] | None = None,
        poll_interval: Seconds = POLL_INTERVAL,
        lease: Seconds = LIBRARY.lease,
        retry: RetryPolicy | Callable[[int], Seconds] = LIBRARY.retry,
        max_attempts: int = LIBRARY.max_attempts,
        warn_after: Seconds | None = LIBRARY.warn_after,
        timeout: Seconds | None = LIBRARY.timeout,
        max_run: Seconds = LIBRARY.max_run,
        grace: Seconds = GRACE,
        autostart: bool = True,
        retention: Seconds | None = None,
        key_retention: Seconds | None = None,
        max_payload: int = MAX_PAYLOAD,
        migrate: bool = False,
        clock: Clock | None = None,
        worker_id: str | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        self.store: Store = open_store(store, migrate=migrate) if store is None or isinstance(store, str) else store
        keep = None if retention is None else checked_delay(retention, "retention")
        self._profile = replace(
            LIBRARY,
            retry=retry_policy(retry),
            max_attempts=checked_max_attempts(max_attempts),
            lease=checked_duration(lease, "lease"),
            timeout=None if timeout is None else checked_duration(timeout, "timeout"),
            warn_after=None if warn_after is None else checked_duration(warn_after, "warn_after"),
            max_run=checked_duration(max_run, "max_run"),
            retention=Retention(keep, keep, None if key_retention is None else checked_delay(key_retention, "key_retention")),
        )
        self._settings = Settings(
            worker_id=_worker_id() if worker_id is None else checked_text(worker_id, "worker_id", 200),
            concurrency=checked_int(concurrency, "concurrency", 1, 100_000),
            poll_interval=checked_duration(poll_interval, "poll_interval"),
            queues=None if queues is None else _queues(queues),
        )
        self._grace = checked_delay(grace, "grace")
        self._autostart = autostart
        self._max_payload = checked_int(max_payload, "max_payload", 1, 1 << 30)
        self._clock = EngineClock(clock)
        self._logger = logger or logging.getLogger("treadle")
        self._registry = Registry()
        self._intervals: dict[str, Interval] = {}
        self._engines: dict[asyncio.AbstractEventLoop, Engine] = {}
        self._started = False
        self._operations = Operations(self.store, self._clock)

    @cached_property
    def sync(self) -> SyncTasks:
        """Blocking twins, for scripts, Flask, Django, and plain handlers."""
        return SyncTasks(self)

    # -- handlers and intervals

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
        return Handler(self, name, function, shape.codec)

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

    # -- enqueueing

    async def enqueue(
        self,
        name: str,
        payload: object = None,
        *,
        delay: Seconds | None = None,
        run_at: datetime | None = None,
        idempotency_key: str | None = None,
        dedupe_key: str | None = None,
        max_attempts: int | None = None,
        priority: int = 0,
        queue: str | None = None,
        connection: Any = None,
    ) -> Enqueued:
        """Store a job. Answers its id, whether it is new, and the job as stored (E4).

        With an `idempotency_key`, a stored job of that name and key is answered instead, in any state (E6); with a
        `dedupe_key`, an unfinished one (E7). With `connection`, the job exists if and only if that connection's
        transaction commits (E10). Raises `InvalidArgument`, with nothing stored.
        """
        job = new_job(
            self._new_id(),
            name,
            payload,
            self._max_payload,
            self._queue_of(name),
            delay=delay,
            run_at=run_at,
            idempotency_key=idempotency_key,
            dedupe_key=dedupe_key,
            max_attempts=max_attempts,
            priority=priority,
            queue=queue,
        )
        if connection is not None:
            return (await self._transactional().enqueue_on(connection, [job], now=self._clock.for_store()))[0]
        return await self._engine().enqueuer.one(job)

    async def enqueue_many(self, jobs: Iterable[Mapping[str, Any] | NewJob], *, connection: Any = None) -> list[Enqueued]:
        """Store many jobs at once, each a mapping of `name`, `payload` and the options of `enqueue`, or a `NewJob` (E9).

        Answers each in order. Raises `InvalidArgument` naming the first bad one, with nothing stored.
        """
        checked = self._checked_many(jobs)
        if connection is not None:
            return await self._transactional().enqueue_on(connection, checked, now=self._clock.for_store())
        return await self._engine().enqueuer.many(checked)

    def _checked_many(self, jobs: Iterable[Mapping[str, Any] | NewJob]) -> list[stored.NewJob]:
        checked = []
        for number, entry in enumerate(jobs):
            try:
                options = spread(entry)
                name, payload = options.pop("name"), options.pop("payload", None)
                checked.append(new_job(self._new_id(), name, payload, self._max_payload, self._queue_of(name), **options))
            except InvalidArgument as error:
                raise InvalidArgument(f"job {number} of the list: {error}") from None
        return checked

    def _enqueue_on_sync(self, jobs: Iterable[Mapping[str, Any] | NewJob], connection: Any) -> list[Enqueued]:
        checked = self._checked_many(jobs)
        return self._transactional().enqueue_on_sync(connection, checked, now=self._clock.for_store())

    def _transactional(self) -> EnqueueOn:
        if not isinstance(self.store, EnqueueOn):
            raise InvalidArgument(f"{type(self.store).__name__} has no transactions of its own; leave connection= out")
        return self.store

    def _queue_of(self, name: object) -> str:
        entry = self._registry.get(name) if isinstance(name, str) else None
        return "default" if entry is None or entry.queue is None else entry.queue

    def _new_id(self) -> str:
        return new_id(self._clock.unix_ms())

    # -- running

    def install(self, app: Any) -> None:
        """Start with a Starlette, FastAPI or Litestar application, and stop gracefully with it (E25).

        With `autostart=False` no worker is started: the application only enqueues.
        """
        lifespan.install(app, self._start_with_app, self.close)

    async def _start_with_app(self) -> None:
        if self._autostart:
            await self.start()

    async def start(self) -> None:
        """Claim and run jobs in the background of the running event loop; safe twice (E25)."""
        await self._engine().start()
        self._started = True

    async def stop(self, grace: Seconds | None = None) -> None:
        """Claim nothing more, let running jobs finish within `grace` seconds, and give back the rest (E24)."""
        await self._engine().stop(self._grace if grace is None else checked_delay(grace, "grace"))
        self._started = False

    async def close(self) -> None:
        """`stop`, and give the store's connections up. A later use opens the store again."""
        await self.stop()
        self._engines.pop(asyncio.get_running_loop(), None)
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run_once(self) -> int:
        """Run what is due now, each job once; answers how many attempts were run (E25)."""
        return await self._engine().run_once()

    async def drain(self) -> int:
        """Run until nothing is due; answers how many attempts were run. Later retries are not waited for (E25)."""
        return await self._engine().drain()

    def _engine(self) -> Engine:
        loop = asyncio.get_running_loop()
        engine = self._engines.get(loop)
        if engine is None:
            self._engines = {other: one for other, one in self._engines.items() if not other.is_closed()}
            engine = Engine(
                self.store,
                self._registry,
                self._intervals,
                self._profile,
                self._settings,
                self._clock,
                self._logger,
                self,
            )
            self._engines[loop] = engine
        return engine

    # -- looking and repairing

    async def get(self, id: str) -> Job | None:
        """The job with its failures, or None if there is none of that id (E15)."""
        return await self._operations.get(_checked_id(id))

    async def list(
        self,
        states: Iterable[State | str] | None = None,
        name: str | None = None,
        queue: str | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """The jobs that match, newest first, with their failures; all of them without a `limit`."""
        return [*await self._operations.list(_filter(states, name, queue), _limit(limit))]

    async def iterate(
        self, states: Iterable[State | str] | None = None, name: str | None = None, queue: str | None = None
    ) -> AsyncIterator[Job]:
        """`list` for any number of jobs, read page by page."""
        async for job in self._operations.iterate(_filter(states, name, queue)):
            yield job

    async def retry(self, id: str | None = None, *, all_dead: bool = False, name: str | None = None) -> Redriven:
        """Send one dead letter round again, or with `all_dead=True` all of them, or those of a `name`; counts start at 0 (E17).

        A dead letter whose dedupe key an unfinished job holds is dropped, and answered as such. Raises `NotFound`, or
        `Conflict` for a job that is not dead.
        """
        if (id is None) == (not all_dead):
            raise InvalidArgument("retry takes the id of a dead job, or all_dead=True")
        if id is not None:
            return await self._operations.redrive(_checked_id(id))
        return await self._operations.redrive_all(_filter(None, name, None))

    async def delete(self, id: str) -> None:
        """Delete a job that is not running (E2). Raises `NotFound`, or `Conflict` for a running one."""
        await self._operations.delete(_checked_id(id))

    async def prune(
        self,
        older_than: Seconds = PRUNE_AFTER,
        *,
        states: Iterable[State | str] = (State.DONE, State.DEAD),
        name: str | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Delete jobs that are older, by default done and dead ones of more than seven days (L5).

        A dry run deletes nothing and counts by the same predicate. Running jobs are never pruned.
        """
        which = _filter(states, name, None)
        if State.RUNNING in (which.states or ()):
            raise InvalidArgument("running jobs cannot be pruned; states may be pending, done and dead")
        age = checked_delay(older_than, "older_than")
        return await self._operations.prune(replace(which, older_than=age), dry_run=dry_run)

    async def stats(self) -> Stats:
        """Counts by state, the next due time, and names with more than one pending job (L6)."""
        return await self._operations.stats()

    async def pending_names(self) -> Sequence[str]:
        """The names of jobs that wait and that no handler is registered for here (E19)."""
        names = await self._operations.pending_names(self._settings.queues)
        return [name for name in names if name not in self._registry]


def _worker_id() -> str:
    return f"{socket.gethostname()[:100]}:{os.getpid()}:{os.urandom(3).hex()}"


def _queues(queues: Iterable[str]) -> tuple[str, ...]:
    if isinstance(queues, str):
        raise InvalidArgument(f"queues must be a list of names, not the text {queues!r}")
    names = tuple(checked_queue(queue) for queue in queues)
    if not names:
        raise InvalidArgument("queues is empty; name at least one, or leave it out for all")
    return names


def _checked_id(id: object) -> str:
    if not isinstance(id, str):
        raise InvalidArgument(f"a job id is text, not {type(id).__name__}")
    return id


def _filter(states: Iterable[State | str] | None, name: str | None, queue: str | None) -> JobFilter:
    return JobFilter(
        states=None if states is None else frozenset(_state(state) for state in _several(states)),
        names=None if name is None else frozenset({name}),
        queues=None if queue is None else frozenset({queue}),
    )


def _several(states: Iterable[State | str]) -> Sequence[State | str]:
    if isinstance(states, str):
        raise InvalidArgument(f"states must be a list, such as ['done'], not the text {states!r}")
    return list(states)


def _state(state: object) -> State:
    try:
        return State(state)  # type: ignore[arg-type]  # what is no state raises ValueError
    except ValueError:
        raise InvalidArgument(f"{state!r} is no state; states are {', '.join(State)}") from None


def _limit(limit: object) -> int | None:
    return None if limit is None else checked_int(limit, "limit", 1, 1 << 62)
