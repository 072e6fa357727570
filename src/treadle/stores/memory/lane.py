"""Lanes: the pending jobs of one queue and name, a line for each priority, so that a claim looks at heads only (E28)."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import TypeAlias

from treadle.core.job import Job
from treadle.core.policies.limits import owned_by_a_face

# The serial number keeps two entries of one job from being compared by the jobs themselves, which have no order.
Entry: TypeAlias = tuple[datetime, str, int, Job]
SLACK = 16
_negative = attrgetter("negative")


class Line:
    """Pending jobs of one priority by `run_at` and id, due or not.

    `run` holds those that were due when they came and came in order, as nearly all do: its ends cost nothing. `heap`
    holds the rest. An entry whose job is no longer the stored one is stale, and dropped when it comes to the head.
    """

    __slots__ = ("heap", "negative", "run")

    def __init__(self, negative: int) -> None:
        self.negative = negative
        self.run: deque[Entry] = deque()
        self.heap: list[Entry] = []

    def push(self, entry: Entry, now: datetime) -> None:
        """Line the entry up."""
        run = self.run
        if entry[0] <= now and (not run or run[-1] < entry):
            run.append(entry)
        else:
            heappush(self.heap, entry)

    def head(self, jobs: Mapping[str, Job]) -> Entry | None:
        """The first entry that is not stale."""
        run, heap = self.run, self.heap
        while True:
            from_heap = bool(heap) and (not run or heap[0] < run[0])
            if from_heap:
                entry = heap[0]
            elif run:
                entry = run[0]
            else:
                return None
            if jobs.get(entry[1]) is entry[3]:
                return entry
            if from_heap:
                heappop(heap)
            else:
                run.popleft()

    def take(self, room: int, now: datetime, bound: Entry | None, jobs: Mapping[str, Job], into: list[Job]) -> None:
        """Move due jobs into the list, at most `room`, as long as they come before `bound`."""
        run, heap = self.run, self.heap
        while room:
            from_heap = bool(heap) and (not run or heap[0] < run[0])
            if from_heap:
                entry = heap[0]
            elif run:
                entry = run[0]
            else:
                return
            if entry[0] > now or (bound is not None and entry > bound):
                return
            if from_heap:
                heappop(heap)
            else:
                run.popleft()
            if jobs.get(entry[1]) is entry[3]:
                into.append(entry[3])
                room -= 1

    def sweep(self, jobs: Mapping[str, Job]) -> None:
        """Drop every stale entry."""
        self.run = deque(entry for entry in self.run if jobs.get(entry[1]) is entry[3])
        self.heap = [entry for entry in self.heap if jobs.get(entry[1]) is entry[3]]
        heapify(self.heap)

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

    def best(self, jobs: Mapping[str, Job], now: datetime) -> tuple[int, Entry, Line] | None:
        """The due job that goes first, and its line; None where none is due."""
        best: tuple[int, Entry, Line] | None = None
        emptied = False
        for line in self.lines:
            entry = line.head(jobs)
            if entry is None:
                emptied = True
            elif entry[0] <= now:
                best = line.negative, entry, line
                break
        if emptied:
            self.lines = [line for line in self.lines if len(line)]
        return best

    def soonest(self, jobs: Mapping[str, Job]) -> datetime | None:
        """When the next pending job is due, or was."""
        heads = [head[0] for line in self.lines if (head := line.head(jobs)) is not None]
        return min(heads, default=None)

    def sweep(self, jobs: Mapping[str, Job]) -> None:
        """Drop stale entries if they are the larger part."""
        if sum(map(len, self.lines)) > 2 * self.pending + SLACK:
            for line in self.lines:
                line.sweep(jobs)
            self.lines = [line for line in self.lines if len(line)]
