"""The hosts of a service's own functions: found in a folder, started at their first use, kept running (F1, F2)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from treadle.core.errors import StoreError
from treadle.core.signals import CallFailed
from treadle.functions.hosting.declaration import FolderFunction
from treadle.functions.hosting.folder import Folder
from treadle.functions.hosting.keeper import HostState, Keeper, Premises, Retired
from treadle.functions.hosting.pace import Pace
from treadle.functions.hosting.ports import free_port
from treadle.functions.hosting.wards import Wards
from treadle.functions.seldom import SeldomLog
from treadle.functions.shortage import Shortage, lacking


async def _unguessable(name: str) -> str:
    """A secret until the first call brings the right one: an empty one could be guessed."""
    return secrets.token_hex(32)


class Hosts:
    """Runs the functions of a folder, each in a process of its own, as long as this service lives.

    `environment` answers what every function gets in its environment, such as TREADLE_URL; it is asked at each start.
    `secret` answers the secret of a function that is started before its first call; without it, such a function is started
    anew at that call. `retire_within` answers how long one that was replaced may finish
    its calls. Make it, and call its methods, within one running loop.
    """

    def __init__(
        self,
        folder: Path | None,
        environment: Callable[[], Mapping[str, str]],
        logger: logging.Logger,
        *,
        ready_within: float = 30.0,
        stop_within: float = 5.0,
        secret: Callable[[str], Awaitable[str]] = _unguessable,
        pace: Pace | None = None,
        retire_within: Callable[[], float] | None = None,
        free_port: Callable[[], int] = free_port,
    ) -> None:
        self._folder = Folder(folder, logger)
        self._pace = replace(pace or Pace(), ready_within=ready_within, stop_within=stop_within)
        self._retire_within = retire_within or (lambda: self._pace.retire_within)
        self._wards = Wards(logger, stop_within)
        self._seldom_log = SeldomLog(logger)
        self._premises = Premises(environment, logger, self._seldom_log, self._wards, free_port, self._pace)
        self._logger = logger
        self._secret = secret
        self._keepers: dict[str, Keeper] = {}
        self._retiring: dict[Keeper, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._stopping = False

    def names(self) -> list[str]:
        """The names of the functions in the folder, sorted."""
        return list(self._present())

    def find(self, name: str) -> FolderFunction | None:
        """What the folder of that name declares, as it was within the last second; None where there is no function."""
        return self._present().get(name)

    def states(self) -> list[HostState]:
        """What runs now, by name; a version that is being replaced comes after its successor."""
        keepers = [*self._keepers.values(), *self._retiring]
        return sorted((keeper.state() for keeper in keepers), key=lambda state: state.name)

    async def start(self) -> None:
        """Start the functions that start with the service, without waiting for them, and begin to watch the folder."""
        if self._watch is None:
            self._stopping = False
            await self._guarded_round()
            self._watch = asyncio.create_task(self._watching(), name="treadle-functions-folder")

    async def place(self, name: str, secret: str, seconds: float) -> str:
        """The base URL of the function's ready process, which is started if it does not run, within so many seconds.

        That process has this secret: one that has another gives way to a new one. So call this without a pause after looking
        the secret up. Raises `CallFailed` where there is no process, saying why, and `Retired` where the process was replaced
        while it was waited for: look the function up again. A pause after a crash is waited for if it ends within 5 s.
        """
        self._refuse_when_stopping(name)
        function = self._fresh(name)
        if function is None:
            raise CallFailed(f"Function '{name}' not found")
        if function.broken is not None:
            self._retire(name, "is broken now")
            raise CallFailed(f"Function '{name}' cannot be reached: {function.broken}")
        keeper = self._keeper(function, secret)
        try:
            url = await keeper.place(seconds)
            if self._keepers.get(name) is not keeper:
                raise Retired  # in the moment in which it became ready
        except Retired:
            self._refuse_when_stopping(name)
            raise
        return url

    async def stop(self, within: float | None = None) -> None:
        """End every process, and wait until all are gone; safe twice, and before `start`.

        What has not ended `within` so many seconds of its SIGTERM is killed; None leaves it at `stop_within`.
        """
        self._stopping = True
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        keepers = [*self._keepers.values(), *self._retiring]
        retiring = [*self._retiring.values()]
        self._keepers = {}
        await asyncio.gather(*(keeper.end(self._pace.stop_within if within is None else within) for keeper in keepers))
        await asyncio.gather(*retiring, return_exceptions=True)
        await self._wards.close()

    def _present(self) -> dict[str, FolderFunction]:
        return self._folder.look() if self._watch is None else self._folder.known

    def _fresh(self, name: str) -> FolderFunction | None:
        try:
            return self._folder.fresh(name)
        except OSError as error:
            what = lacking(error) or str(error.strerror)
            raise Shortage(f"Function '{name}' cannot be reached: {what}", what) from None

    def _refuse_when_stopping(self, name: str) -> None:
        if self._stopping:
            raise CallFailed(f"Function '{name}' cannot be reached: the service is stopping")

    def _keeper(self, function: FolderFunction, secret: str) -> Keeper:
        """The keeper of this version of the function: the one there is, or a new one in its place."""
        keeper = self._keepers.get(function.name)
        if keeper is None or keeper.ended or keeper.function != function or keeper.secret != secret:
            self._retire(function.name, "has changed")
            keeper = self._keepers[function.name] = Keeper(function, secret, self._premises)
        return keeper

    def _retire(self, name: str, why: str) -> None:
        """Let what runs under that name end: nothing is sent to it any more, and what it is at work on may end."""
        keeper = self._keepers.pop(name, None)
        if keeper is not None:
            self._logger.info("function '%s' %s: its process is stopped", name, why)
            task = asyncio.create_task(keeper.end(self._retire_within()), name=f"treadle-retire-{name}")
            self._retiring[keeper] = task
            task.add_done_callback(lambda _: self._retiring.pop(keeper, None))

    async def _watching(self) -> None:
        while True:
            await asyncio.sleep(self._pace.look_every)
            await self._guarded_round()

    async def _guarded_round(self) -> None:
        try:
            await self._round()
        except Exception as error:
            if what := error.lacking if isinstance(error, Shortage) else lacking(error):
                self._seldom_log.warning("the functions folder cannot be looked at, and stays as it was: %s", what)
            else:
                self._logger.exception("looking at the functions folder failed, and goes on")

    async def _round(self) -> None:
        """Stop what is gone, and see that what starts with the service runs."""
        functions = await asyncio.to_thread(self._folder.look)
        for name in [*self._keepers]:
            if name not in functions and self._fresh(name) is None:  # it may have come after the look
                self._retire(name, "is gone")
        for function in functions.values():
            if function.start == "service" and function.broken is None:
                await self._see_that_it_runs(function.name)

    async def _see_that_it_runs(self, name: str) -> None:
        try:
            secret = None if name in self._keepers else await self._secret(name)
        except StoreError as error:
            self._seldom_log.warning("functions that start with the service wait for their secrets: %s", error)
            return
        # Meanwhile a call may have started it, from newer files and with a newer secret.
        function, keeper = self._fresh(name), self._keepers.get(name)
        if self._stopping or function is None or function.start != "service" or function.broken is not None:
            return
        if keeper is not None:
            secret = keeper.secret
        if secret is not None:
            self._keeper(function, secret)
