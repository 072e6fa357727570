"""`Tasks`: the library's one object. It holds handlers, intervals and a store, and makes an engine in each event loop."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from treadle.core import job as stored
from treadle.core.clock import Clock
from treadle.core.errors import InvalidArgument
from treadle.core.job import Enqueued
from treadle.core.payload import MAX_PAYLOAD
from treadle.core.policies.limits import (
    checked_delay,
    checked_duration,
    checked_int,
    checked_max_attempts,
    checked_text,
)
from treadle.core.policies.retry import RetryPolicy, retry_policy
from treadle.core.store import EnqueueOn, Store
from treadle.engine.clock import EngineClock
from treadle.engine.engine import Engine
from treadle.engine.ids import new_id, new_ids, new_worker_id
from treadle.engine.operations import Operations
from treadle.engine.schedules import Schedules
from treadle.engine.setup import Settings, Setup
from treadle.tasks import install as lifespan
from treadle.tasks.blocking import SyncTasks
from treadle.tasks.inspection import Inspection
from treadle.tasks.options import NewJob, new_job, spread
from treadle.tasks.profile import CONCURRENCY, GRACE, LIBRARY, POLL_INTERVAL
from treadle.tasks.registration import Registration
from treadle.tasks.settings import checked_concurrency, checked_queues, checked_store, opened_store, retention_of

Payload = TypeVar("Payload")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")
Seconds = float | timedelta


class Tasks(Registration, Inspection):
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
        super().__init__()
        self.store = opened_store(store, migrate=migrate)
        self._profile = replace(
            LIBRARY,
            retry=retry_policy(retry),
            max_attempts=checked_max_attempts(max_attempts),
            lease=checked_duration(lease, "lease"),
            timeout=None if timeout is None else checked_duration(timeout, "timeout"),
            warn_after=None if warn_after is None else checked_duration(warn_after, "warn_after"),
            max_run=checked_duration(max_run, "max_run"),
            retention=retention_of(retention, key_retention),
        )
        self._settings = Settings(
            worker_id="" if worker_id is None else checked_text(worker_id, "worker_id", 200),
            concurrency=checked_concurrency(concurrency),
            poll_interval=checked_duration(poll_interval, "poll_interval"),
            queues=None if queues is None else checked_queues(queues),
        )
        self._grace = checked_delay(grace, "grace")
        self._autostart = autostart
        self._max_payload = checked_int(max_payload, "max_payload", 1, 1 << 30)
        self._clock = EngineClock(clock)
        self._logger = logger or logging.getLogger("treadle")
        self._engines: dict[asyncio.AbstractEventLoop, Engine] = {}
        self._worker_id_given = worker_id is not None
        self._process = 0  # whose worker id is in the settings, where none was given
        self._operations = Operations(self.store, self._clock)
        self._sync = SyncTasks(self)

    @property
    def sync(self) -> SyncTasks:
        """Blocking twins, for scripts, Flask, Django, and plain handlers."""
        return self._sync

    @property
    def settings(self) -> Settings:
        """The worker's id, concurrency, poll interval and queues (E18)."""
        if not self._worker_id_given and self._process != os.getpid():  # a server may fork after it has imported this
            self._settings = replace(self._settings, worker_id=new_worker_id())
            self._process = os.getpid()
        return self._settings

    @property
    def grace(self) -> float:
        """How many seconds `stop` waits for running jobs (E24)."""
        return self._grace

    def configure(
        self,
        *,
        store: Store | None = None,
        concurrency: int | None = None,
        queues: Iterable[str] | None = None,
        grace: Seconds | None = None,
    ) -> None:
        """Change settings, before `start`: how `treadle work` lets its options overrule the application's (L7).

        What is None stays as it is. Handlers stay bound to this object, so what they enqueue goes to the new store
        too. Raises `InvalidArgument` after `start`.
        """
        if self._started:
            raise InvalidArgument("configure() must come before start; the worker already runs")
        if store is not None:
            self.store = checked_store(store)
            self._operations = Operations(store, self._clock)
        if concurrency is not None:
            self._settings = replace(self._settings, concurrency=checked_concurrency(concurrency))
        if queues is not None:
            self._settings = replace(self._settings, queues=checked_queues(queues))
        if grace is not None:
            self._grace = checked_delay(grace, "grace")
        self._engines.clear()  # one made before, by an enqueue while the application was imported, has the old settings

    @property
    def schedules(self) -> Schedules:
        """The stored cron schedules: list, iterate, get, pause, resume, run_now, delete (T14). For a running event loop."""
        return self._engine().schedules

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
        entries = list(jobs)
        ids = new_ids(self._clock.unix_ms(), len(entries))
        for number, entry in enumerate(entries):
            try:
                options = spread(entry)
                name, payload = options.pop("name"), options.pop("payload", None)
                checked.append(new_job(ids[number], name, payload, self._max_payload, self._queue_of(name), **options))
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

    async def stop(self, grace: Seconds | None = None) -> None:
        """Claim nothing more, let running jobs finish within `grace` seconds, and give back the rest (E24)."""
        await self._engine().stop(self._grace if grace is None else checked_delay(grace, "grace"))

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

    @property
    def _started(self) -> bool:
        # In single steps, since other threads have loops of their own. Of a loop that is over, so is the worker.
        return any(engine.started and not loop.is_closed() for loop, engine in [*self._engines.items()])

    def _own_queues(self) -> Sequence[str] | None:
        return self._settings.queues

    def _engine(self) -> Engine:
        loop = asyncio.get_running_loop()
        engine = self._engines.get(loop)
        if engine is None:
            for other in [*self._engines]:  # in single steps, since other threads have loops of their own
                if other.is_closed():
                    self._engines.pop(other, None)
            setup = Setup(self.store, self._registry, self._profile, self.settings, self._clock, self._logger)
            engine = Engine(setup, self, self._intervals, self._crons)
            self._engines[loop] = engine
        return engine
