"""The functions service: everything that one `treadle serve` process runs, in one event loop (F)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from treadle import __version__
from treadle.core.clock import Clock
from treadle.core.policies.limits import FUNCTIONS_QUEUE
from treadle.core.store import Store
from treadle.engine.clock import EngineClock
from treadle.engine.engine import Engine
from treadle.engine.ids import new_worker_id
from treadle.engine.operations import Operations
from treadle.engine.service import Service
from treadle.engine.setup import Settings as WorkerSettings, Setup
from treadle.functions.caller import Caller
from treadle.functions.calls import Calls
from treadle.functions.catalogue import Catalogue
from treadle.functions.crons import CronEntries
from treadle.functions.directory import Directory
from treadle.functions.hosting import Hosts
from treadle.functions.http.server import Server
from treadle.functions.http.site import Site
from treadle.functions.identity import KeyRole
from treadle.functions.jobs import FunctionJobs
from treadle.functions.key_ring import KeyRing
from treadle.functions.keys import Keys
from treadle.functions.metrics import Metrics
from treadle.functions.overrides import Overrides
from treadle.functions.profile import CONCURRENCY, GRACE, POLL_INTERVAL
from treadle.functions.registry import FunctionRegistry
from treadle.functions.settings import ServiceSettings, profile
from treadle.functions.settings_watch import SettingsWatch
from treadle.functions.stored_settings import Settings

Role = Literal["api", "worker", "all"]
ROLES: tuple[Role, ...] = ("api", "worker", "all")
PATIENCE = 5.0  # seconds that requests under way get once the calls are over
AT_ONCE = 1.0  # seconds that the processes of functions get after a stop without grace
FOLLOW_EVERY = 1.0
MARGIN = 5.0  # seconds that a call gets beyond its own time limit before the worker ends it, if the lease has room for them


@dataclass(frozen=True, slots=True)
class Started:
    """Where the service answers, None for a worker alone, and the keys that this start made, to be shown once (F8)."""

    url: str | None
    made: Mapping[KeyRole, str]


class FunctionsService:
    """`role` says whether it answers requests, works, or both. A worker fires the cron entries too.

    `folder` is the functions folder, `environment` where settings and keys may come from instead of the store, usually
    `os.environ`. `host` and `port` are where the API listens, 0 for any free port; of a worker only health and metrics are
    there, and with None nothing at all.
    """

    def __init__(
        self,
        store: Store,
        *,
        role: Role = "all",
        host: str = "127.0.0.1",
        port: int | None = 0,
        folder: Path | None = None,
        concurrency: int = CONCURRENCY,
        poll_interval: float = POLL_INTERVAL,
        environment: Mapping[str, str],
        clock: Clock | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        self._logger = logger or logging.getLogger("treadle")
        self._clock = EngineClock(clock)
        self._store = store
        self._environment = environment
        self._works = role in ("worker", "all")
        self._answers = role in ("api", "all")
        self._begun = self._ready = False
        self._watch = SettingsWatch(Settings(store, environment, self._clock), self._clock, self._logger)
        overrides = Overrides.of(environment, self._logger)
        self._keys = Keys(store, overrides, self._clock)
        self._ring = KeyRing(store, overrides, self._clock, self._logger)
        self._session_key = overrides.service_role or ""
        self._url = environment.get("TREADLE_URL", "")
        self.metrics = Metrics(store, self._clock, self._logger)
        directory = Directory(store, self._clock, self._logger)
        self._hosts = Hosts(
            folder, self._given_to_functions, self._logger, secret=directory.secret, retire_within=lambda: self._current.timeout
        )
        self.catalogue = Catalogue(directory, self._hosts, self._clock)
        self._caller = Caller(logger=self._logger)
        registry = FunctionRegistry(
            Calls(self.catalogue, self._caller, lambda: self._current.timeout, self.metrics, self._logger).run,
            self.catalogue.limits,
            lambda: store.pending_names([FUNCTIONS_QUEUE]),
            lambda: self._engine.worker.running,
            self._longest,
        )
        settings = WorkerSettings(new_worker_id(), concurrency, poll_interval, (FUNCTIONS_QUEUE,))
        self._setup = Setup(
            store, registry, profile(ServiceSettings()), settings, self._clock, self._logger, observer=self.metrics
        )
        self._engine = Engine(self._setup)
        self._site = Site(
            FunctionJobs(
                Operations(store, self._clock), self._engine.enqueuer, self._engine.new_id, lambda: self._current.max_attempts
            ),
            CronEntries(self._engine.schedules),
            self.catalogue,
            self._ring,
            self.metrics,
            lambda: self._current,
            self._look,
            lambda: self.ready,
            __version__,
            whole=self._answers,
        )
        self._server = None if port is None else Server(self._site.app, host, port)
        self._follower = Follower(self._watch, self._setup, self._engine.pruner.wake)

    @property
    def _current(self) -> ServiceSettings:
        return self._watch.latest

    @property
    def ready(self) -> bool:
        """Whether it has started, and is not told to stop."""
        return self._ready

    @property
    def made(self) -> Mapping[KeyRole, str]:
        """The keys that the start made, also where it failed afterwards."""
        return self._keys.made

    @property
    def worker_id(self) -> str:
        """The id under which this process claims jobs."""
        return self._setup.settings.worker_id

    async def start(self, told: Callable[[Started], None] = lambda started: None) -> Started:
        """Begin to work and to answer, once in the life of this object. Before the first answer, it is `told` what is there.

        Raises `InvalidArgument` for settings that contradict each other, and `StoreError`.
        """
        if self._begun:
            raise RuntimeError("this service was started before; make another one")
        self._begun = True
        try:
            await self._look()  # a store that cannot be used is told once, and not as one that is tried again
            await self._follower.run_once()
            url = None
            if self._server is not None:
                url = await self._server.listen()
            await self._keys.make_absent()  # after what may well fail: they are shown only once
            if self._answers:
                self._url = self._url or url or ""
            if not self._session_key:
                self._session_key = await self._ring.open_session()
            self._follower.start()
            await self._hosts.start()
            if self._works:
                await self._engine.start()
            self._tell_lost_functions()
            self._ready = True
            started = Started(url, self.made)
            told(started)
            if self._server is not None:
                await self._server.serve()
        except BaseException:
            await self.stop(0)
            raise
        return started

    async def stop(self, grace: float = GRACE) -> None:
        """Claim nothing more, let calls finish within `grace` seconds and give back the rest; then stop answering.

        The API answers until the calls are over, since what they run may want to enqueue. Safe twice, and before `start`.
        """
        self._ready = False
        await self._engine.stop(grace)
        if self._server is not None:
            await self._server.stop(min(grace, PATIENCE))
        await self._hosts.stop(None if grace else AT_ONCE)
        await self._follower.stop()
        await self._caller.close()
        await self._site.close()
        await self.metrics.close()
        await self._ring.close()

    def _tell_lost_functions(self) -> None:
        if not self._url and self._hosts.names():
            self._logger.warning(
                "the functions of the folder are not told where the API is: set TREADLE_URL, so that they can enqueue"
            )

    async def _look(self) -> None:
        """Read something small from the store."""
        await self._store.get_document("functions/settings", "ready", now=self._clock.for_store())

    def _longest(self) -> float:
        settings = self._current
        return settings.timeout + min(MARGIN, (settings.lease - settings.timeout) / 2)

    def _given_to_functions(self) -> Mapping[str, str]:
        """What the processes of functions find in their environment, so that they can enqueue (F2)."""
        given = {"TREADLE_SERVICE_ROLE_KEY": self._session_key}
        return {**given, "TREADLE_URL": self._url} if self._url else given


class Follower(Service):
    """Has the worker go by the settings as they are now, from its next claim on, and `prune` when jobs are kept shorter."""

    def __init__(self, watch: SettingsWatch, setup: Setup, prune: Callable[[], None]) -> None:
        super().__init__(FOLLOW_EVERY, setup.clock, setup.logger)
        self._watch = watch
        self._setup = setup
        self._prune = prune

    async def run_once(self) -> None:
        """Look whether they have changed. The first time raises `InvalidArgument` where they contradict each other (F7)."""
        before = self._setup.profile.retention
        self._setup.profile = profile(await self._watch.read())
        if self._setup.profile.retention != before:
            self._prune()
