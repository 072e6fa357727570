"""All lanes, found by queue and by name; a lane exists while a job of it is pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from treadle.core.job import Job
from treadle.core.policies.limits import owned_by_a_face
from treadle.core.store import Demand
from treadle.stores.memory.lane import Lane


class Lanes:
    """Where pending jobs wait, whatever their number, so that a claim touches the demanded ones only (S8)."""

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self._jobs = jobs
        self._by_queue: dict[str, dict[str, Lane]] = {}
        self._by_name: dict[str, dict[str, Lane]] = {}
        self.arrivals = 0  # how often a job came to wait, or to wait for another moment

    def push(self, job: Job, now: datetime) -> None:
        """Take in a job that has become pending."""
        of_name = self._by_name.get(job.name)
        lane = of_name.get(job.queue) if of_name is not None else None
        if lane is None:
            lane = self._open(job.queue, job.name)
        lane.pending += 1
        self.arrivals += 1
        lane.line(-job.priority).push(job, now, self.arrivals)

    def moved(self, job: Job, now: datetime) -> None:
        """Line up a pending job anew whose due time has changed."""
        lane = self._by_queue[job.queue][job.name]
        self.arrivals += 1
        lane.line(-job.priority).push(job, now, self.arrivals)
        lane.sweep(self._jobs)

    def gone(self, queue: str, name: str) -> None:
        """Take note that a pending job is no longer stored."""
        lane = self._by_queue[queue][name]
        lane.pending -= 1
        lane.sweep(self._jobs)
        self.close(lane)

    def close(self, lane: Lane) -> None:
        """Give the lane up if none of its jobs is pending any longer."""
        if lane.pending:
            return
        queue, name = lane.queue, lane.name
        for lanes, outer, inner in ((self._by_queue, queue, name), (self._by_name, name, queue)):
            del lanes[outer][inner]
            if not lanes[outer]:
                del lanes[outer]

    def demanded(self, demand: Demand) -> list[tuple[Lane, int]]:
        """The lanes that the demand is about, each with the `max_attempts` for jobs without one."""
        names, queues = demand.names, demand.queues
        if names is None:
            return [(lane, demand.max_attempts) for lane in self._of_queues(queues)]
        found = []
        for name, max_attempts in names.items():
            lanes = self._by_name.get(name)
            if lanes is None:
                continue
            if queues is None:
                found += [(lane, max_attempts) for lane in lanes.values() if not lane.owned]
            else:
                found += [(lanes[queue], max_attempts) for queue in dict.fromkeys(queues) if queue in lanes]
        return found

    def names(self, queues: Sequence[str] | None) -> list[str]:
        """The names that wait, sorted."""
        return sorted({lane.name for lane in self._of_queues(queues)})

    def due(self, queue: str, now: datetime) -> bool:
        """Whether a job of the queue could be claimed now."""
        return any(lane.best(self._jobs, now) is not None for lane in self._by_queue.get(queue, {}).values())

    def soonest(self) -> datetime | None:
        """When the next pending job of all is due, or was."""
        return min(self.oldest().values(), default=None)

    def oldest(self) -> dict[str, datetime]:
        """The same of each queue that has pending jobs."""
        oldest = {}
        for queue, lanes in self._by_queue.items():
            soonest = [moment for lane in lanes.values() if (moment := lane.soonest(self._jobs)) is not None]
            if soonest:
                oldest[queue] = min(soonest)
        return oldest

    def repeated(self) -> Counter[str]:
        """The names with more than one pending job, and how many."""
        totals = ((name, sum(lane.pending for lane in lanes.values())) for name, lanes in self._by_name.items())
        return Counter({name: total for name, total in totals if total > 1})

    def kept(self) -> int:
        """How many entries are kept, stale ones too."""
        return sum(len(line) for lanes in self._by_queue.values() for lane in lanes.values() for line in lane.lines)

    def _open(self, queue: str, name: str) -> Lane:
        lane = Lane(queue, name)
        self._by_queue.setdefault(queue, {})[name] = lane
        self._by_name.setdefault(name, {})[queue] = lane
        return lane

    def _of_queues(self, queues: Sequence[str] | None) -> Iterator[Lane]:
        wanted = dict.fromkeys(queues) if queues is not None else [q for q in self._by_queue if not owned_by_a_face(q)]
        for queue in wanted:
            yield from self._by_queue.get(queue, {}).values()
