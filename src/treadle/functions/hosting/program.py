"""A process of a function: one program in a process group of its own, from its start until nothing of it is left."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from treadle.functions.hosting.output import Output
from treadle.functions.hosting.wards import Wards
from treadle.functions.shortage import NO_PROCESS, lacking

# The program is executed only after the warden knows of its group: a service that is killed in between leaves a shell that
# reads the end of its input, and ends.
_GATE = 'read -r go && exec "$@" </dev/null'
_SHELL = "/bin/sh"
KILLED_WITHIN = 5.0
_LAST_WORDS = 0.25  # for output that is still in the pipe when the process has ended
_AGAIN = 0.02


class CannotStart(Exception):
    """The program cannot be executed; the message says why, in a few words. `lacking` is what was lacking here, or None."""

    def __init__(self, why: str, lacking: str | None = None) -> None:
        super().__init__(why)
        self.lacking = lacking


class Program(asyncio.SubprocessProtocol):
    """A running process. `exited` is its exit status, minus the number of the signal that killed it."""

    def __init__(self, output: Output, wards: Wards) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = loop.create_future()
        self.pid = 0
        self._output = output
        self._wards = wards
        self._transport: asyncio.SubprocessTransport | None = None
        self._silent = asyncio.Event()
        self._closed = asyncio.Event()
        self._over = False

    @classmethod
    async def start(
        cls, command: Sequence[str], folder: Path, environment: Mapping[str, str], output: Output, wards: Wards
    ) -> Program:
        """Execute the command in that folder. Raises `CannotStart`."""
        _check_program(command[0], folder, environment)
        try:
            await wards.open()
            transport, program = await asyncio.get_running_loop().subprocess_exec(
                lambda: cls(output, wards),
                _SHELL,
                "-c",
                _GATE,
                command[0],
                *command,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            what = NO_PROCESS if error.errno == errno.EAGAIN else lacking(error)
            raise CannotStart(what or error.strerror or str(error), what) from None
        wards.add(program.pid)
        gate = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        gate.write(b"\n")
        gate.close()
        return program

    async def stop(self, within: float) -> None:
        """SIGTERM to the group, SIGKILL after `within` seconds, until all of it is gone and reaped; safe at any time.

        A second call, with a shorter time, hurries up a first one. Where the program has ended by itself, what it left in
        its group is ended.
        """
        if self._over:
            return
        self._signal(signal.SIGTERM)
        if not await self._gone(within):
            self._signal(signal.SIGKILL)
            await self._gone(KILLED_WITHIN)
        await self._close()

    async def _gone(self, within: float) -> bool:
        """Whether the process is reaped and its group is empty, at the latest after so many seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        await asyncio.wait({self.exited}, timeout=within)
        while not self.exited.done() or self._signal(0):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(_AGAIN)
        return True

    def _signal(self, number: int) -> bool:
        """Signal the group; False where there is none any more."""
        if self._over:
            return False  # its number may belong to others by now
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    async def _close(self) -> None:
        assert self._transport is not None
        if self.exited.done():
            await _set(self._silent, _LAST_WORDS)
        self._over = True
        self._transport.close()  # a daemon that left the group may hold the pipe for ever
        await _set(self._closed, _LAST_WORDS)
        self._wards.remove(self.pid)

    # -- what asyncio tells of the process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process was made; it waits at the gate."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It wrote to stdout or stderr."""
        self._output.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """One of its pipes is closed."""
        if fd == 1:
            self._output.end()
            self._silent.set()

    def process_exited(self) -> None:
        """It ended, and was reaped."""
        if not self.exited.done():
            status = None if self._transport is None else self._transport.get_returncode()
            self.exited.set_result(-1 if status is None else status)

    def connection_lost(self, exc: Exception | None) -> None:
        """It ended, and all of its pipes are closed."""
        self._closed.set()


def ending(status: int) -> str:
    """How a process ended, in a few words."""
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _check_program(name: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Refuse what cannot be executed, with a better reason than the shell's."""
    if "/" in name:
        path = folder / name
        if not path.is_file():
            raise CannotStart(f"there is no program {name}")
        if not os.access(path, os.X_OK):
            raise CannotStart(f"{name} is not executable")
    elif shutil.which(name, path=environment.get("PATH", os.defpath)) is None:
        raise CannotStart(f"the program {name!r} is not installed, or not in PATH")


async def _set(event: asyncio.Event, within: float) -> None:
    try:
        async with asyncio.timeout(within):
            await event.wait()
    except TimeoutError:
        pass
