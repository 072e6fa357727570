"""Claiming: the heads of the demanded lanes, merged (E3, E28)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from heapq import heapify, heappop, heapreplace

from treadle.core.job import Job, State
from treadle.core.store import Claimed, Demand
from treadle.stores.memory import snapshot
from treadle.stores.memory.lane import Entry, Lane
from treadle.stores.memory.ledger import Ledger
from treadle.stores.memory.moments import later


def claim(ledger: Ledger, token: str, demands: Sequence[Demand], worker: str, lease: float, now: datetime) -> Claimed:
    """Take what the demands ask for; exact about when the next job is due, whether the limits were reached or not."""
    until = later(now, lease)
    claimed: list[Job] = []
    for demand in demands:
        lanes = ledger.lanes.demanded(demand)
        for job, max_attempts in _taken(ledger, lanes, demand.limit, now):
            running = snapshot.running(job, now, until, worker, max_attempts)
            ledger.jobs[job.id] = running
            ledger.tokens[job.id] = token
            claimed.append(running)
    ledger.by_state[State.PENDING].live -= len(claimed)
    return Claimed(claimed, _next_in(ledger, demands, now))


def _taken(ledger: Ledger, lanes: Sequence[tuple[Lane, int]], limit: int, now: datetime) -> list[tuple[Job, int]]:
    """The due jobs of the lanes, best first over all of them, and no longer in their lanes."""
    jobs = ledger.jobs
    heads = [
        (best[0], best[1], index, best[2])
        for index, (lane, _) in enumerate(lanes)
        if (best := lane.best(jobs, now)) is not None
    ]
    heapify(heads)
    taken: list[tuple[Job, int]] = []
    numbers = [0] * len(lanes)
    while heads and len(taken) < limit:
        negative, _, index, line = heads[0]
        # The line goes on as long as it is ahead of the next best lane.
        runner_up = min(heads[1:3], default=None)
        bound: Entry | None = runner_up[1] if runner_up is not None and runner_up[0] == negative else None
        came: list[Job] = []
        line.take(limit - len(taken), now, bound, jobs, came)
        lane, max_attempts = lanes[index]
        taken += [(job, max_attempts) for job in came]
        numbers[index] += len(came)
        best = lane.best(jobs, now) if len(taken) < limit else None
        if best is None:
            heappop(heads)
        else:
            heapreplace(heads, (best[0], best[1], index, best[2]))
    for (lane, _), number in zip(lanes, numbers, strict=True):
        if number:
            ledger.lanes.taken(lane, number)
    return taken


def _next_in(ledger: Ledger, demands: Sequence[Demand], now: datetime) -> float | None:
    """Seconds until a job that the demands are about is due; 0.0 if one is."""
    soonest = [
        moment
        for demand in demands
        for lane, _ in ledger.lanes.demanded(demand)
        if (moment := lane.soonest(ledger.jobs)) is not None
    ]
    return max(0.0, (min(soonest) - now).total_seconds()) if soonest else None
