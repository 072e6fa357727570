"""The registry of a functions worker: any name is run, within the limits of single functions (F1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from treadle.core.job import Job
from treadle.core.policies.limits import FUNCTIONS_QUEUE
from treadle.core.store import Demand
from treadle.engine.registry import Entry, Registry
from treadle.functions.function import PREFIX

_QUEUES = (FUNCTIONS_QUEUE,)


class FunctionRegistry(Registry):
    """Has an entry for every function, known or not: a job of one that does not exist fails, it does not wait (F5).

    A call keeps its own time. `longest` answers a little more seconds, after which the worker itself ends the attempt.
    """

    def __init__(
        self,
        call: Callable[..., Awaitable[Any]],
        limits: Callable[[], Awaitable[Mapping[str, int]]],
        waiting: Callable[[], Awaitable[Iterable[str]]],
        running: Callable[[], Iterable[Job]],
        longest: Callable[[], float],
    ) -> None:
        super().__init__()
        self._call = call
        self._limits = limits
        self._waiting = waiting
        self._running = running
        self._longest = longest
        self._turn = 0

    def get(self, name: str) -> Entry | None:
        """The entry that calls the function."""
        if not name.startswith(PREFIX):
            return None
        return Entry(name, self._call, is_async=True, takes_context=True, takes_payload=False, timeout=self._longest())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.startswith(PREFIX)

    async def demands(
        self, free: int, queues: tuple[str, ...] | None, max_attempts: int, *, plain: bool = True
    ) -> tuple[list[Demand], bool]:
        """Any name, in one demand, unless functions have limits; then a share of the free slots for each, and for the rest."""
        limits = await self._limits()
        if not limits:
            return [Demand(free, _QUEUES, None, max_attempts)], True
        room = dict(limits)
        for job in self._running():
            if job.name in room:
                room[job.name] -= 1
        waiting = list(await self._waiting())
        shares = [([name], room[name]) for name in waiting if name in room and room[name] > 0]
        if rest := [name for name in waiting if name not in room]:
            shares.append((rest, free))
        complete = all(room[name] > 0 for name in waiting if name in room)
        return self._shared(shares, free, max_attempts), complete

    def _shared(self, shares: list[tuple[list[str], int]], free: int, max_attempts: int) -> list[Demand]:
        """Demands for `free` jobs together. Whose turn it is comes first, so that one free slot goes round."""
        demands: list[Demand] = []
        self._turn += 1
        for number in range(len(shares)):
            names, most = shares[(self._turn + number) % len(shares)]
            limit = min(most, -(-free // (len(shares) - number)))  # an equal part of what is left, rounded up
            if limit > 0:
                demands.append(Demand(limit, _QUEUES, dict.fromkeys(names, max_attempts), max_attempts))
                free -= limit
        return demands
