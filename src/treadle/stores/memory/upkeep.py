"""What operators do to jobs that do not run: send round again, run now, delete (E2, E17, E29)."""

from __future__ import annotations

from datetime import datetime

from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Redriven
from treadle.stores.memory import snapshot
from treadle.stores.memory.ledger import Ledger
from treadle.stores.memory.selection import narrowed, select

_DEAD = frozenset({State.DEAD})
_PENDING = frozenset({State.PENDING})
_AT_REST = frozenset({State.PENDING, State.DONE, State.DEAD})


def redrive(ledger: Ledger, which: JobFilter, policy: RedrivePolicy, limit: int | None, now: datetime) -> Redriven:
    """Send dead letters round again, oldest id first; the first of each dedupe key wins."""
    revived, dropped = [], []
    for job in select(ledger, narrowed(which, _DEAD), now, limit=limit):
        key = job.key
        dedupe = key if key is not None and key.kind == "dedupe" else None
        if dedupe is not None and ledger.keys.setdefault((job.name, dedupe.kind, dedupe.text), job.id) != job.id:
            ledger.remove(job)
            dropped.append(job.id)
            continue
        ledger.unfinish(job)
        ledger.pend(snapshot.revived(job, now, reset=policy is RedrivePolicy.RESET), now)
        revived.append(job.id)
    ledger.sweep()
    return Redriven(revived, dropped)


def run_now(ledger: Ledger, which: JobFilter, now: datetime) -> int:
    """Make matching pending jobs due now."""
    jobs = select(ledger, narrowed(which, _PENDING), now)
    for job in jobs:
        due = ledger.jobs[job.id] = snapshot.due(job, now)
        ledger.lanes.moved(due, now)
        ledger.intervals.remember_due(due)
    return len(jobs)


def delete(ledger: Ledger, which: JobFilter, limit: int | None, now: datetime) -> int:
    """Delete matching jobs that do not run, oldest id first."""
    jobs = select(ledger, narrowed(which, _AT_REST), now, limit=limit)
    for job in jobs:
        ledger.remove(job)
    ledger.sweep()
    return len(jobs)
