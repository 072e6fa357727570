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
        """Demands for `free` jobs together, in which every share is asked for: what waits may not be due yet.

        Of more shares than slots several go into one demand, the best of their jobs first. It asks for one job, and so for no
        more than any of them may have.
        """
        self._turn += 1
        at = self._turn % max(len(shares), 1)  # whose turn it is comes first, and has the larger part
        in_turn = [*shares[at:], *shares[:at]]
        groups = [in_turn[place::free] for place in range(min(free, len(in_turn)))]
        demands: list[Demand] = []
        for number, group in enumerate(groups):
            limit = min(-(-free // (len(groups) - number)), *(most for _, most in group))  # an equal part of what is left
            names = dict.fromkeys((name for names, _ in group for name in names), max_attempts)
            demands.append(Demand(limit, _QUEUES, names, max_attempts))
            free -= limit
        return demands
