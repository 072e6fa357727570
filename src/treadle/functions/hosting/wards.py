"""The service's end of the pipe to its warden, which outlives it by a few seconds if it is killed (F2)."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

WARDEN = Path(__file__).with_name("warden.py")
_PATIENCE = 5.0


class Wards:
    """The process groups that the warden is to end if this process is killed. One warden, started with the first of them."""

    def __init__(self, logger: logging.Logger, stop_within: float) -> None:
        self._logger = logger
        self._stop_within = stop_within
        self._groups: set[int] = set()
        self._warden: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The warden's process, or None while there is none."""
        return None if self._warden is None else self._warden.pid

    async def open(self) -> None:
        """Start the warden unless it runs. Raises `OSError`."""
        async with self._opening:
            if self._warden is None:
                told = set(self._groups)
                self._warden = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", str(WARDEN), str(self._stop_within), *map(str, told)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,
                )
                self._watch = asyncio.create_task(self._watching(self._warden), name="treadle-warden")
                for group in self._groups ^ told:  # what changed meanwhile
                    self._tell(f"-{group}" if group in told else f"+{group}")

    def add(self, group: int) -> None:
        """The group was started."""
        self._groups.add(group)
        self._tell(f"+{group}")

    def remove(self, group: int) -> None:
        """The group is gone."""
        if group in self._groups:
            self._groups.remove(group)
            self._tell(f"-{group}")

    async def close(self) -> None:
        """End the warden, and with it whatever is still left; safe twice."""
        watch, self._watch = self._watch, None
        warden, self._warden = self._warden, None
        if watch is not None:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        if warden is not None:
            assert warden.stdin is not None
            warden.stdin.close()
            try:
                async with asyncio.timeout(self._stop_within + _PATIENCE):
                    await warden.wait()
            except TimeoutError:
                warden.kill()
                await warden.wait()

    def _tell(self, line: str) -> None:
        # Written through at once: what is in the pipe is read even if this process is killed now.
        if self._warden is not None and self._warden.stdin is not None and not self._warden.stdin.is_closing():
            self._warden.stdin.write(f"{line}\n".encode())

    async def _watching(self, warden: asyncio.subprocess.Process) -> None:
        """A warden that ended by itself is replaced, and told again."""
        await warden.wait()
        self._logger.warning("the warden of the functions was killed; another one is started")
        self._warden = None
        if warden.stdin is not None:
            warden.stdin.close()
        try:
            await self.open()
        except OSError as error:
            self._logger.warning("the warden cannot be started: %s", error.strerror)  # the next function tries again
