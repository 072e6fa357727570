"""The engine: a store, a clock, and the services around one worker, in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from treadle.core.filter import JobFilter
from treadle.core.job import NewJob
from treadle.core.schedule import Interval
from treadle.core.store import Listener, Wakeups
from treadle.engine.enqueuer import Enqueuer
from treadle.engine.ids import new_id
from treadle.engine.intervals import Intervals
from treadle.engine.lookout import Lookout
from treadle.engine.pruner import Pruner
from treadle.engine.reclaimer import Reclaimer
from treadle.engine.scheduler import Scheduler
from treadle.engine.schedules import Schedules
from treadle.engine.service import Service
from treadle.engine.setup import Setup
from treadle.engine.worker import Worker

if TYPE_CHECKING:
    from treadle.core.cron import Cron

PRUNE_EVERY = 60.0
LOOK_OUT_EVERY = 5.0
_NONE: Mapping[str, Any] = MappingProxyType({})


class Engine:
    """Starts and stops everything in order. It belongs to the loop that it was made in."""

    def __init__(
        self,
        setup: Setup,
        tasks: Any = None,
        intervals: Mapping[str, Interval] = _NONE,
        crons: Mapping[str, tuple[Cron, NewJob]] = _NONE,
    ) -> None:
        store, clock, logger, settings = setup.store, setup.clock, setup.logger, setup.settings
        self._setup = setup
        self._store = store
        self._clock = clock
        self._listener: Listener | None = None
        self.enqueuer = Enqueuer(store, clock)
        poll = settings.poll_interval
        self.intervals = Intervals(store, clock, logger, poll, intervals, self.new_id)
        self.worker = Worker(setup, tasks, self.intervals)
        self.reclaimer = Reclaimer(
            store, clock, logger, poll, self.intervals.copy, self.worker.wake, setup.observer, self.worker.keep
        )
        self.lookout = Lookout(store, clock, logger, LOOK_OUT_EVERY, setup.registry, settings.queues)
        which = JobFilter(
            queues=None if settings.queues is None else frozenset(settings.queues),
            of_faces=False if settings.queues is None else None,
        )
        self.pruner = Pruner(store, clock, logger, PRUNE_EVERY, setup, which)
        self._crons = crons
        self._crons_stored = False
        self.scheduler = Scheduler(store, clock, logger, poll, self.new_id)
        self.schedules = Schedules(store, store, clock, self.new_id, self.scheduler.wake)
        self._services: tuple[Service, ...] = (self.intervals, self.scheduler, self.reclaimer, self.lookout, self.pruner)
        self._started = False
        self._stopping = 0
        self._at_rest = asyncio.Event()
        self._at_rest.set()

    @property
    def started(self) -> bool:
        """Whether it runs in the background."""
        return self._started

    def new_id(self) -> str:
        """A new job id."""
        return new_id(self._clock.unix_ms())

    async def start(self) -> None:
        """Run in the background; safe twice. Raises a `StoreError` if the store cannot be used at all.

        A stop that is under way is waited for; one that comes before the start is complete ends it.
        """
        while self._stopping:
            await self._at_rest.wait()
        if self._started:
            return
        self._started = True
        stops, listener = self.worker.stops, None
        try:
            await self.intervals.run_once()
            await self._store_crons()
            if isinstance(self._store, Wakeups):
                listener = await self._store.listen(self.worker.wake)
        except BaseException:
            self._started = False
            raise
        if self.worker.stops != stops:
            if listener is not None:
                await listener.close()
            return
        self._listener = listener
        for service in self._services:
            service.start()
        self.worker.start()

    async def stop(self, grace: float) -> None:
        """Stop the worker gracefully, then the services; safe twice, and before `start` (E24).

        One that fails or is cancelled has stopped the services all the same; jobs that run then go on to their end. Raises
        `RuntimeError` within a handler that runs here.
        """
        self.worker.refuse_handlers("let a task or a thread of its own stop it")
        self._stopping += 1
        self._at_rest.clear()
        try:
            await self.worker.stop(grace, self._services)
        finally:
            try:
                await asyncio.gather(*(service.stop() for service in self._services))
            finally:
                try:
                    listener, self._listener = self._listener, None
                    if listener is not None:
                        await listener.close()
                finally:
                    self._started = False
                    self._stopping -= 1
                    if not self._stopping:
                        self._at_rest.set()

    async def run_once(self) -> int:
        """Do each duty once: take back expired leases, put intervals back, prune, and run what is due (E25)."""
        return await self._run_once(self.worker.stops)

    async def _run_once(self, stops: int) -> int:
        await self._store_crons()
        for service in self._services:
            await service.run_once()
        return await self.worker.run_due(stops)

    async def _store_crons(self) -> None:
        """Bring the stored schedules to what the code registers, once; what means the same is left as it is."""
        if not self._crons_stored:
            for name, (cron, job) in self._crons.items():
                await self.schedules.put(name, cron, job)
            self._crons_stored = True

    async def drain(self) -> int:
        """Run until nothing is due, or a stop; answers how many attempts were run (E25)."""
        total, stops = 0, self.worker.stops
        while ran := await self._run_once(stops):
            total += ran
        return total
