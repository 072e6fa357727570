"""The catalogue: every function that can be called from here, registered by URL or found in the functions folder (F1)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from treadle.core.errors import NotFound
from treadle.engine.clock import EngineClock
from treadle.functions.directory import BadFunction, Directory
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
        return await self._found(name, stored)

    async def list(self) -> list[Function]:
        """Every function, by name. One whose document is bad is left out, which the directory tells.

        Looking stores nothing, so one of the folder that was never called has no secret yet.
        """
        stored = {function.name: function for function in await self._directory.list()}
        found: list[Function] = []
        for name in sorted({*stored, *self._hosts.names()}):
            with suppress(BadFunction):
                if (function := await self._found(name, stored.get(name) or Function(name, secret=""))) is not None:
                    found.append(function)
        return found

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

    async def _found(self, name: str, stored: Function | None) -> Function | None:
        """The function of that name, given what the store has of it: by its URL, or with what its folder says."""
        if stored is not None and stored.url is not None:
            return stored
        declared = self._hosts.find(name)
        if declared is None:
            return None
        function = await self._directory.ensure(name) if stored is None else stored
        return replace(function, method=declared.method, fail_on=declared.fail_on, concurrency=declared.concurrency)
