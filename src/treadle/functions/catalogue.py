"""The catalogue: every function that can be called from here, registered by URL or found in the functions folder (F1)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from treadle.core.errors import NotFound, StoreUnavailable
from treadle.core.signals import CallFailed
from treadle.engine.clock import EngineClock
from treadle.functions.directory import Directory
from treadle.functions.function import Function
from treadle.functions.hosting import Hosts, Retired

FRESH = 1.0  # seconds that the limits are taken as they were


@dataclass(frozen=True, slots=True)
class Reached:
    """A function, and the base URL at which it answers now; its process has the secret that `function` has."""

    function: Function
    url: str


class Catalogue:
    """Finds functions, and where they answer. One that is registered by URL stands before a folder of the same name."""

    def __init__(self, directory: Directory, hosts: Hosts, clock: EngineClock) -> None:
        self._directory = directory
        self._hosts = hosts
        self._clock = clock
        self._limits: dict[str, int] = {}
        self._read_at = float("-inf")

    async def find(self, name: str) -> Function | None:
        """The function of that name, active or not; None where there is none.

        What it answers is never older than what it has answered before.
        """
        stored = await self._stored(name)
        if stored is None and self._hosts.find(name) is not None:
            made = await self._directory.ensure(name)
            stored = await self._stored(name) or made  # as everybody sees it: its secret may have been changed meanwhile
        return self._merged(name, stored)

    async def list(self) -> list[Function]:
        """Every function, by name. One whose document is bad is left out, which the directory tells.

        Looking stores nothing, so one of the folder that was never called has no secret yet.
        """
        stored = {function.name: function for function in await self._directory.list()}
        names = sorted({*stored, *self._hosts.names()})
        found = [self._merged(name, stored.get(name) or Function(name, secret="")) for name in names]
        return [function for function in found if function is not None]

    async def reach(self, name: str, seconds: float) -> Reached:
        """An active function where it answers, its process started if need be, all within so many seconds.

        Raises `CallFailed`, a `Shortage` where it is this process that cannot, and `StoreError`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    function = await self.find(name)
            except TimeoutError:
                raise StoreUnavailable(f"the store did not answer within {seconds:g} s") from None
            if function is None:
                raise CallFailed(f"Function '{name}' not found")
            if not function.active:
                raise CallFailed(f"Function '{name}' is inactive")
            if function.url is not None:
                return Reached(function, function.url)
            try:
                # Nothing is waited for in between: what was found is still the newest that anybody here knows, and no process
                # with a newer secret gives way to one with an older.
                return Reached(function, await self._hosts.place(name, function.secret, deadline - loop.time()))
            except Retired:
                continue  # its files or its secret were changed while it was started

    async def address(self, function: Function, seconds: float) -> str:
        """The base URL at which the function answers, its process started if need be, within so many seconds.

        For calls that are not signed. Raises as `reach` does.
        """
        return function.url or (await self.reach(function.name, seconds)).url

    async def limits(self) -> dict[str, int]:
        """How many jobs of each function may run at once in this process, by job name; those without a limit are left out."""
        now = self._clock.seconds()
        if now - self._read_at >= FRESH:
            self._limits = {one.job_name: one.concurrency for one in await self.list() if one.concurrency is not None}
            self._read_at = now
        return self._limits

    async def _stored(self, name: str) -> Function | None:
        try:
            return await self._directory.get(name)
        except NotFound:
            return None

    def _merged(self, name: str, stored: Function | None) -> Function | None:
        """The function of that name, given what the store has of it: by its URL, or with what its folder says."""
        if stored is None or stored.url is not None:
            return stored
        declared = self._hosts.find(name)
        if declared is None:
            return None
        return replace(stored, method=declared.method, fail_on=declared.fail_on, concurrency=declared.concurrency)
