"""A subject: what the trials need to know of a library, a bare loop or treadle, in the environment of that subject."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from benchmarks.load import payload


class Void(Exception):
    """The figure does not count: not every job ran exactly once, or not in time."""


class Subject:
    """One library at one setting over one store, emptied and opened anew for each trial.

    `place` is a folder of its own, `url` the server's URL where there is a server, `variant` what the plan says.
    """

    note: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()
    threads = False  # callers at once are threads that call `one_blocking`, since the library has no asyncio

    def __init__(self, place: str, url: str, variant: str) -> None:
        self.place = place
        self.url = url
        self.variant = variant

    async def reset(self) -> None:
        """Empty the store and make what the library needs in it."""

    async def open(self) -> None:
        """Connect the side that enqueues."""

    async def close(self) -> None:
        """Disconnect it."""

    async def one(self, kind: str, number: int) -> None:
        """Enqueue one job and wait until it is stored."""
        self.one_blocking(kind, number)

    def one_blocking(self, kind: str, number: int) -> None:
        """The same without asyncio, from any thread."""
        raise NotImplementedError

    async def bulk(self, kind: str, numbers: range) -> None:
        """Enqueue the jobs by the library's own bulk call, a thousand a call."""
        raise NotImplementedError

    @property
    def has_bulk(self) -> bool:
        """Whether the library has a bulk call."""
        return type(self).bulk is not Subject.bulk

    async def fill(self, kind: str, jobs: int) -> None:
        """Store jobs before a drain, the quickest way there is."""
        if self.has_bulk:
            await self.bulk(kind, range(jobs))
        else:
            for number in range(jobs):
                await self.one(kind, number)

    async def left(self) -> int | None:
        """How many of the started jobs the store does not yet show as finished; None where it cannot tell."""
        return None

    async def ended(self) -> Mapping[str, int] | None:
        """How many jobs the store shows as done and dead, where finished jobs are kept."""
        return None

    def work(self, concurrency: int) -> None:
        """Run a worker in this process until SIGTERM."""
        raise NotImplementedError

    async def start_here(self, concurrency: int) -> None:
        """Run a worker in this event loop."""
        raise NotImplementedError

    async def stop_here(self) -> None:
        """End it."""

    def durability(self) -> str:
        """What a power cut may take, as read from the library's own connection."""
        return ""

    async def schedule(self, numbers: range, first: int, apart: int) -> None:
        """Store a cron schedule for each job, replacing it if it is there, with the times in seconds since 1970.

        The first is due at `first`, each further one `apart` seconds after the one before, and none again in a trial's time.
        """
        raise NotImplementedError

    async def due(self) -> bool:
        """Whether a schedule is due that has not fired."""
        raise NotImplementedError

    async def enqueued(self) -> Mapping[int, int]:
        """When each of the last thousand finished jobs was enqueued, as the store says, by its number, in ns since 1970."""
        raise NotImplementedError

    async def listed(self) -> None:
        """Read the newest hundred jobs of a state, for each state in turn."""
        raise NotImplementedError

    async def counted(self) -> None:
        """Read the counts by state."""
        raise NotImplementedError

    async def pile(self, kind: str, jobs: int) -> None:
        """Store jobs that no drain runs: `finished`, `unknown` or `future`."""
        raise NotImplementedError


def payloads(kind: str, numbers: range, size: int = 1000) -> list[list[Any]]:
    """The payloads of these jobs in calls of `size`."""
    return [[payload(kind, number) for number in numbers[start : start + size]] for start in range(0, len(numbers), size)]
