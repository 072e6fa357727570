"""How far claims have come in each queue, name and priority, so that the next ones need not begin at the beginning."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeAlias

from treadle.core.clock import from_micros
from treadle.core.job import Job
from treadle.core.store import Demand

Group: TypeAlias = tuple[str, str, int]
"""Queue, name and priority."""

WORTH = 0.001  # seconds that a look from the beginning takes from which on it is worth it to go on from the floors instead
SHARE = 20  # a look from the beginning is made so seldom that it takes a twentieth of the time
LONGEST = 1.0  # seconds, at most, in which a job that came in below a floor is passed over
MOST = 64


class Floors:
    """The floors of one demand, and when a look from the beginning is due again.

    Each queue, name and priority that there was at the last look from the beginning has one. What other processes enqueue below
    a floor, or for another queue, name or priority, is passed over until the next such look, for `LONGEST` seconds at most, and
    only as long as claims come back full.
    """

    def __init__(self) -> None:
        self._floors: dict[Group, datetime] = {}
        self._looked = 0.0
        self._took = 0.0

    def now(self) -> list[tuple[str, str, int, datetime]]:
        """The floors to go on from; none where a look from the beginning is cheap, or due."""
        if self._took < WORTH or time.monotonic() - self._looked > min(SHARE * self._took, LONGEST):
            return []
        return [(*group, run_at) for group, run_at in tuple(self._floors.items())]

    def looked(self, took: float, heads: str | None) -> None:
        """A look from the beginning was made: it took so many seconds, and found these heads, as claim.sql writes them."""
        self._looked, self._took = time.monotonic(), took
        self._floors = {}
        if took >= WORTH and heads is not None:
            self._floors = {(queue, name, priority): from_micros(at) for queue, name, priority, at in json.loads(heads)}

    def claimed(self, jobs: Iterable[Job]) -> None:
        """These were taken: of each group the last one is the floor from now on."""
        if self._floors:
            floors = dict(self._floors)
            for job in jobs:
                group = (job.queue, job.name, job.priority)
                if group in floors and floors[group] < job.run_at:
                    floors[group] = job.run_at
            self._floors = floors

    def arrived(self, jobs: Iterable[Job] | None) -> None:
        """These are pending now: unless the floors lead to all of them, the next look is one from the beginning."""
        floors = self._floors
        if floors and (jobs is None or any(not _reaches(floors, job) for job in jobs)):
            self._floors = {}


def _reaches(floors: dict[Group, datetime], job: Job) -> bool:
    floor = floors.get((job.queue, job.name, job.priority))
    return floor is not None and floor <= job.run_at


class FloorsOfDemands:
    """The floors of a store, by what is demanded. Claims of several threads may cross: a floor is a hint, set in one step."""

    def __init__(self) -> None:
        self._floors: dict[object, Floors] = {}

    def of(self, demand: Demand) -> Floors:
        """The floors of demands like this one."""
        asked = (demand.queues, None if demand.names is None else tuple(demand.names))
        found = self._floors.get(asked)
        if found is None:
            if len(self._floors) >= MOST:
                self._floors.clear()
            found = self._floors[asked] = Floors()
        return found

    def arrived(self, jobs: Sequence[Job] | None) -> None:
        """These are pending now, or, where it is None, any may be."""
        for floors in tuple(self._floors.values()):
            floors.arrived(jobs)
