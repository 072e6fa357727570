"""Lanes: the pending jobs of one queue and name, a line for each priority, so that a claim looks at heads only (E28)."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush
from operator import attrgetter

from treadle.core.job import Job
from treadle.core.policies.limits import owned_by_a_face

SLACK = 16
_negative = attrgetter("negative")


class Line:
    """Pending jobs of one priority by `run_at` and id, due or not.

    `run` holds those that were due when they came and came in order, as nearly all do: its ends cost nothing. `heap`
    holds the rest; the serial number there keeps two entries of one id from being compared by the jobs, which have no
    order. A job that is no longer the stored one of its id is stale, and dropped when it comes to the head.
    """

    __slots__ = ("heap", "negative", "run")

    def __init__(self, negative: int) -> None:
        self.negative = negative
        self.run: deque[Job] = deque()
        self.heap: list[tuple[datetime, str, int, Job]] = []

    def push(self, job: Job, now: datetime, serial: int) -> None:
        """Line the job up."""
        run, run_at = self.run, job.run_at
        if run_at <= now:
            if not run:
                run.append(job)
                return
            last = run[-1]
            if last.id < job.id if last.run_at == run_at else last.run_at < run_at:
                run.append(job)
                return
        heappush(self.heap, (run_at, job.id, serial, job))

    def head(self, jobs: Mapping[str, Job]) -> Job | None:
        """The first job that is not stale."""
        run, heap = self.run, self.heap
        while heap or run:
            from_heap = self._heap_leads()
            job = heap[0][3] if from_heap else run[0]
            if jobs.get(job.id) is job:
                return job
            if from_heap:
                heappop(heap)
            else:
                run.popleft()
        return None

    def take(self, room: int, now: datetime, jobs: Mapping[str, Job]) -> list[Job]:
        """The due jobs from the head, at most `room`, lined up no longer."""
        run, heap = self.run, self.heap
        taken: list[Job] = []
        while room and (heap or run):
            from_heap = self._heap_leads() if heap else False
            job = heap[0][3] if from_heap else run[0]
            if job.run_at > now:
                break
            if from_heap:
                heappop(heap)
            else:
                run.popleft()
            if jobs.get(job.id) is job:
                taken.append(job)
                room -= 1
        return taken

    def sweep(self, jobs: Mapping[str, Job]) -> None:
        """Drop every stale job."""
        self.run = deque(job for job in self.run if jobs.get(job.id) is job)
        self.heap = [entry for entry in self.heap if jobs.get(entry[1]) is entry[3]]
        heapify(self.heap)

    def _heap_leads(self) -> bool:
        if not self.heap:
            return False
        if not self.run:
            return True
        entry, job = self.heap[0], self.run[0]
        return entry[1] < job.id if entry[0] == job.run_at else entry[0] < job.run_at

    def __len__(self) -> int:
        """How many entries are kept, stale ones too."""
        return len(self.run) + len(self.heap)


class Lane:
    """The pending jobs of one queue and name; `pending` is how many there are."""

    __slots__ = ("lines", "name", "owned", "pending", "queue")

    def __init__(self, queue: str, name: str) -> None:
        self.queue = queue
        self.name = name
        self.owned = owned_by_a_face(queue)
        self.pending = 0
        self.lines: list[Line] = []  # highest priority first

    def line(self, negative: int) -> Line:
        """The line of this priority (as its negative, the order of claiming)."""
        lines = self.lines
        if lines and lines[0].negative == negative:
            return lines[0]
        at = bisect_left(lines, negative, key=_negative)
        if at == len(lines) or lines[at].negative != negative:
            lines.insert(at, Line(negative))
        return lines[at]

    def best(self, jobs: Mapping[str, Job], now: datetime) -> tuple[Line, Job] | None:
        """The due job that goes first, and its line; None where none is due."""
        best: tuple[Line, Job] | None = None
        emptied = False
        for line in self.lines:
            job = line.head(jobs)
            if job is None:
                emptied = True
            elif job.run_at <= now:
                best = line, job
                break
        if emptied:
            self.lines = [line for line in self.lines if len(line)]
        return best

    def soonest(self, jobs: Mapping[str, Job]) -> datetime | None:
        """When the next pending job is due, or was."""
        heads = [head.run_at for line in self.lines if (head := line.head(jobs)) is not None]
        return min(heads, default=None)

    def sweep(self, jobs: Mapping[str, Job]) -> None:
        """Drop stale jobs if they are the larger part."""
        if sum(map(len, self.lines)) > 2 * self.pending + SLACK:
            for line in self.lines:
                line.sweep(jobs)
            self.lines = [line for line in self.lines if len(line)]
