"""The catalogue: every function that can be called from here, registered by URL or found in the functions folder (F1)."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.errors import NotFound
from treadle.core.signals import CallFailed
from treadle.engine.clock import EngineClock
from treadle.functions.directory import Directory
from treadle.functions.function import Function
from treadle.functions.hosting import Hosts

FRESH = 1.0  # seconds that the limits are taken as they were


class Catalogue:
    """Finds functions, and where they answer. One that is registered by URL stands before a folder of the same name."""

    def __init__(self, directory: Directory, hosts: Hosts, clock: EngineClock) -> None:
        self._directory = directory
        self._hosts = hosts
        self._clock = clock
        self._limits: dict[str, int] = {}
        self._read_at = float("-inf")

    async def find(self, name: str) -> Function | None:
        """The function of that name, active or not; None where there is none."""
        try:
            stored = await self._directory.get(name)
        except NotFound:
            stored = None
        if stored is not None and stored.url is not None:
            return stored
        if self._hosts.find(name) is None:
            return None
        return self._described(await self._directory.ensure(name) if stored is None else stored)

    async def list(self) -> list[Function]:
        """Every function, by name."""
        found = {function.name: function for function in await self._directory.list() if function.url is not None}
        for name in self._hosts.names():
            if name not in found and (function := await self.find(name)) is not None:
                found[name] = function
        return [found[name] for name in sorted(found)]

    async def address(self, function: Function, seconds: float) -> str:
        """The base URL at which the function answers, its process started if need be, within so many seconds.

        Raises `CallFailed`.
        """
        if function.url is not None:
            return function.url
        return await self._hosts.place(function.name, function.secret, seconds)

    async def limits(self) -> dict[str, int]:
        """How many jobs of each function may run at once in this process, by job name; those without a limit are left out."""
        now = self._clock.seconds()
        if now - self._read_at >= FRESH:
            self._limits = {one.job_name: one.concurrency for one in await self.list() if one.concurrency is not None}
            self._read_at = now
        return self._limits

    def _described(self, function: Function) -> Function:
        """With what its folder says of it."""
        declared = self._hosts.find(function.name)
        if declared is None:
            raise CallFailed(f"Function {function.name!r} not found")  # its folder went in this very moment
        return replace(function, method=declared.method, fail_on=declared.fail_on, concurrency=declared.concurrency)
