"""A keeper: keeps one version of a function running, started anew after a crash, until it is retired (F2)."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from treadle.core.signals import CallFailed
from treadle.engine.clock import EngineClock
from treadle.functions.hosting import probe
from treadle.functions.hosting.declaration import FolderFunction
from treadle.functions.hosting.output import Output
from treadle.functions.hosting.pace import Pace
from treadle.functions.hosting.ports import listens, taken
from treadle.functions.hosting.program import CannotStart, Program, ending
from treadle.functions.hosting.wards import Wards
from treadle.functions.seldom import SeldomLog
from treadle.functions.shortage import Shortage, lacking

State = Literal["starting", "ready", "waiting", "stopping"]
OUTPUT_LOGGER = "treadle.functions"
PORTS_TRIED = 3
_PORT = re.compile(r"\$(?:PORT\b|\{PORT\})")
_FIRST_LOOK, _LAST_LOOK = 0.02, 0.25  # how soon a starting process is looked at again
_STRANGER_TIME = 5.0  # for a process that cannot listen on its port, since another program does, to end
_MOST_OF_LAST = 300
_UNKNOWN, _STRANGE = "unknown", "another program's"  # what a look may find, beside what is wrong


class Retired(Exception):
    """The version asked for is kept running no more; ask for the present one."""


@dataclass(frozen=True, slots=True)
class Premises:
    """What all keepers of a service share."""

    environment: Callable[[], Mapping[str, str]]
    logger: logging.Logger
    seldom_log: SeldomLog
    wards: Wards
    free_port: Callable[[], int]
    pace: Pace


@dataclass(frozen=True, slots=True)
class HostState:
    """What runs of a function. `restarts` counts the starts after the first one, `since` is when it came into this state."""

    name: str
    pid: int | None
    port: int | None
    state: State
    restarts: int
    since: datetime


class Keeper:
    """Keeps `function`, as its files were, running with `secret`, from its making until `end`."""

    def __init__(self, function: FolderFunction, secret: str, premises: Premises) -> None:
        self.function = function
        self.secret = secret
        self._premises = premises
        self._pace = premises.pace
        self._loop = asyncio.get_running_loop()
        self._clock = EngineClock()
        self._state: State = "starting"
        self._since = self._clock.now()
        self._turned: asyncio.Future[State] = self._loop.create_future()
        self._program: Program | None = None
        self._port: int | None = None
        self._restarts = 0
        self._failures = 0
        self._trouble = ""
        self._lacking: str | None = None  # here, at the last start or look
        self._next_start = 0.0
        self._task = asyncio.create_task(self._keep(), name=f"treadle-function-{function.name}")

    def state(self) -> HostState:
        """What runs at this moment."""
        pid = None if self._program is None else self._program.pid
        return HostState(self.function.name, pid, self._port, self._state, self._restarts, self._since)

    @property
    def ended(self) -> bool:
        """Whether it keeps nothing running any more."""
        return self._task.done()

    async def place(self, seconds: float) -> str:
        """The address of the ready process, waited for at most so many seconds. Raises `CallFailed` and `Retired`."""
        deadline = self._loop.time() + seconds
        while self._state != "ready":
            left = deadline - self._loop.time()
            if self.ended:
                raise Retired
            if self._state == "waiting" and self._next_start - self._loop.time() > min(left, self._pace.patience):
                raise self._failed()
            before, turned = self._state, self._turned
            either: set[asyncio.Future[State] | asyncio.Task[None]] = {turned, self._task}
            await asyncio.wait(either, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)
            if self.ended:
                continue
            if not turned.done():
                raise self._failure(f"its process was not ready in the {seconds:.1f} s that the call had left")
            if before == "starting" and turned.result() == "waiting":
                raise self._failed()  # the start that this call waited for
        return f"http://{probe.HOST}:{self._port}"

    async def end(self, within: float) -> None:
        """End it all; a second call with a shorter time hurries up a first one."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._turn("stopping")
        if self._program is not None:
            await self._program.stop(within)
            self._program = None

    def _failed(self) -> CallFailed:
        pause = max(0.0, self._next_start - self._loop.time())
        return self._failure(f"{self._trouble}; it is started again in {pause:.0f} s")

    def _failure(self, why: str) -> CallFailed:
        text = f"Function '{self.function.name}' cannot be reached: {why}"
        return CallFailed(text) if self._lacking is None else Shortage(text, self._lacking)

    def _turn(self, state: State) -> None:
        self._state = state
        self._since = self._clock.now()
        turned, self._turned = self._turned, self._loop.create_future()
        turned.set_result(state)

    # -- its life

    async def _keep(self) -> None:
        name, logger = self.function.name, self._premises.logger
        while True:
            self._lacking = None
            try:
                self._trouble, self._lacking = await self._life(), None
            except CannotStart as error:
                self._trouble, self._lacking = f"its process cannot be started: {error}", error.lacking
            except Exception as error:
                self._lacking = lacking(error)
                if self._lacking is not None:
                    self._trouble = f"its process cannot be started: {self._lacking}"
                else:
                    logger.exception("the function '%s' could not be started", name)
                    self._trouble = "it could not be started, for a reason that the service's log tells"
            await self._let_go()
            if self._lacking is None:
                self._failures += 1
            log = logger if self._lacking is None else self._premises.seldom_log
            pause = self._pace.pause(max(self._failures, 1))
            self._next_start = self._loop.time() + pause
            self._turn("waiting")
            log.warning("function '%s': %s; it is started again in %g s", name, self._trouble, pause)
            await asyncio.sleep(pause)
            self._restarts += 1
            self._turn("starting")

    async def _let_go(self) -> None:
        """End the program, whatever ended the keeping of it: one that lived on would do so unseen, beside its successor."""
        if self._program is not None:
            if self._state == "ready":
                self._turn("stopping")
            await self._program.stop(self._pace.stop_within)
        self._program = self._port = None

    async def _life(self) -> str:
        """Start the process and see to it until it is gone; answers what ended it. Raises `CannotStart`."""
        for _ in range(PORTS_TRIED):
            port = self._port = self._premises.free_port()
            output = Output(logging.getLogger(f"{OUTPUT_LOGGER}.{self.function.name}"))
            program = self._program = await self._start(port, output)
            trouble = await self._until_ready(program, port)
            if trouble is None:
                return await self._while_well(program, port, output)
            ended_by_itself = program.exited.done()
            await program.stop(self._pace.stop_within)
            if not (ended_by_itself and taken(port)):
                return _with_last(trouble, output)
            self._premises.logger.info("function '%s': port %d is taken by another program", self.function.name, port)
        return f"another program took its port, {PORTS_TRIED} times in a row"

    async def _start(self, port: int, output: Output) -> Program:
        function = self.function
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TREADLE_")}
        environment = {
            **inherited,
            "PYTHONUNBUFFERED": "1",
            **function.env,
            **self._premises.environment(),
            "TREADLE_FUNCTION_NAME": function.name,
            "TREADLE_FUNCTION_SECRET": self.secret,
            "PORT": str(port),
        }
        command = [_PORT.sub(str(port), word) for word in function.command]
        return await Program.start(command, function.folder, environment, output, self._premises.wards)

    async def _until_ready(self, program: Program, port: int) -> str | None:
        """None once it is ready, or what came instead."""
        within = self.function.ready_within or self._pace.ready_within
        deadline = self._loop.time() + within
        pause, strange_since = _FIRST_LOOK, None
        while not program.exited.done():
            left = deadline - self._loop.time()
            if left <= 0 and self._lacking is None:  # else nobody knows whether it is ready
                return f"its process was not ready within {within:g} s"
            found = await self._look(port, min(max(left, _LAST_LOOK), self._pace.check_every), program)
            if program.exited.done():
                break
            if found is None:
                return None
            if found == _STRANGE:
                # Another program's port: then ours is about to end. Or the port of a helper elsewhere, such as a container.
                strange_since = strange_since or self._loop.time()
                if self._loop.time() - strange_since > _STRANGER_TIME:
                    return None
            await asyncio.wait({program.exited}, timeout=pause)
            pause = min(pause * 1.5, _LAST_LOOK)
        return f"its process {ending(program.exited.result())} before it was ready"

    async def _while_well(self, program: Program, port: int, output: Output) -> str:
        """Look at a ready process until it ends or is ended; answers why."""
        ready_at = self._loop.time()
        self._turn("ready")
        self._premises.logger.info("function '%s' is ready: process %d, port %d", self.function.name, program.pid, port)
        failures, trouble = 0, ""
        while failures < self._pace.checks:
            await asyncio.wait({program.exited}, timeout=self._pace.check_every)
            if program.exited.done():
                trouble = f"its process {ending(program.exited.result())}"
                break
            found = await self._look(port, self._pace.check_every)
            if found == _UNKNOWN:
                continue  # ending what is busy would end what it works at
            failures = failures + 1 if found else 0
            trouble = f"it failed {failures} checks in a row, the last one because {found}"
        if self._loop.time() - ready_at >= self._pace.steady_after:
            self._failures = 0
        self._turn("stopping")
        await program.stop(self._pace.stop_within)
        return _with_last(trouble, output)

    async def _look(self, port: int, within: float, owner: Program | None = None) -> str | None:
        """What is wrong, and with an owner whether the port is its, else `_STRANGE`; `_UNKNOWN` where it cannot be said."""
        what: str | None = None
        try:
            found = await probe.trouble(port, self.function.health, within)
            if found is None and owner is not None and not owner.exited.done():
                found = None if await asyncio.to_thread(listens, port, owner.pid) else _STRANGE
        except TimeoutError:
            found = _UNKNOWN  # its queue of connections is full, since it is at work
        except (OSError, RuntimeError) as error:
            what = lacking(error)
            if what is None:
                raise
            found = _UNKNOWN
            self._premises.seldom_log.warning("whether functions are well cannot be seen: %s", what)
        self._lacking = what
        return found


def _with_last(trouble: str, output: Output) -> str:
    last = output.last if len(output.last) <= _MOST_OF_LAST else f"{output.last[:_MOST_OF_LAST]}..."
    return f"{trouble} ({last})" if last else trouble
