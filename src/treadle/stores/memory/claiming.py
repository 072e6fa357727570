"""Claiming: the heads of the demanded lanes, merged (E3, E28)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from heapq import heapify, heappop, heapreplace
from typing import TypeAlias

from treadle.core.job import Job
from treadle.core.store import Claimed, Demand
from treadle.stores.memory.lane import Lane, Line
from treadle.stores.memory.ledger import Ledger
from treadle.stores.memory.moments import later
from treadle.stores.memory.snapshot import running

# Priority, due time and id decide; ids differ, so that what follows is never compared.
_Head: TypeAlias = tuple[int, datetime, str, int, Line, Job]


def claim(ledger: Ledger, token: str, demands: Sequence[Demand], worker: str, lease: float, now: datetime) -> Claimed:
    """Take what the demands ask for, and tell exactly when the next job is due, whether the limits were reached or not."""
    claiming = _Claiming(ledger, token, worker, later(now, lease), now)
    all_lanes: list[Lane] = []
    more = False
    for demand in demands:
        lanes = ledger.lanes.demanded(demand)
        more = claiming.take(lanes, demand.limit) or more
        all_lanes += [lane for lane, _ in lanes]
    ledger.pending.live -= len(claiming.claimed)
    # Of several demands, a later one may have taken what an earlier one left.
    next_in = 0.0 if more and len(demands) == 1 else _next_in(ledger, all_lanes, now)
    return Claimed(claiming.claimed, next_in)


class _Claiming:
    """One claim under way."""

    def __init__(self, ledger: Ledger, token: str, worker: str, until: datetime, now: datetime) -> None:
        self.claimed: list[Job] = []
        self._ledger, self._token, self._worker, self._until, self._now = ledger, token, worker, until, now

    def take(self, lanes: Sequence[tuple[Lane, int]], limit: int) -> bool:
        """Claim at most `limit` due jobs of the lanes, best first over all of them; whether more are due."""
        jobs, now = self._ledger.jobs, self._now
        heads: list[_Head] = []
        for index, (lane, _) in enumerate(lanes):
            best = lane.best(jobs, now)
            if best is not None:
                heads.append((best[0].negative, best[1].run_at, best[1].id, index, best[0], best[1]))
        heapify(heads)
        room = limit
        while heads and room > 0:
            _, _, _, index, line, head = heads[0]
            lane, max_attempts = lanes[index]
            # Alone, a line is taken as far as it goes; in company, one job at a time.
            taken = line.take(room, now, jobs) if len(heads) == 1 else [head]
            self._hold(lane, taken, max_attempts)
            room -= len(taken)
            following = line.head(jobs)
            if following is None or following.run_at > now:
                best = lane.best(jobs, now)
                if best is None:
                    heappop(heads)
                    self._ledger.lanes.close(lane)
                    continue
                line, following = best
            heapreplace(heads, (line.negative, following.run_at, following.id, index, line, following))
        return bool(heads)

    def _hold(self, lane: Lane, taken: Sequence[Job], max_attempts: int) -> None:
        jobs, tokens, token, claimed = self._ledger.jobs, self._ledger.tokens, self._token, self.claimed
        now, until, worker = self._now, self._until, self._worker
        for job in taken:
            held = jobs[job.id] = running(job, now, until, worker, max_attempts)
            tokens[job.id] = token
            claimed.append(held)
        lane.pending -= len(taken)


def _next_in(ledger: Ledger, lanes: Sequence[Lane], now: datetime) -> float | None:
    """Seconds until a job of the lanes is due; 0.0 where one is, None where none waits."""
    soonest: datetime | None = None
    for lane in lanes:
        moment = lane.soonest(ledger.jobs)
        if moment is not None and (soonest is None or moment < soonest):
            if moment <= now:
                return 0.0
            soonest = moment
    return None if soonest is None else (soonest - now).total_seconds()
