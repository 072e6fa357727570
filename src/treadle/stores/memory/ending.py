"""What attempts become: outcomes applied where the claim still holds (E3, E21, E22)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from heapq import nsmallest
from typing import assert_never

from treadle.core.job import NewJob
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.store import Claim, Ending, Expired, Reclaim
from treadle.stores.memory import snapshot
from treadle.stores.memory.ledger import Ledger
from treadle.stores.memory.moments import later


def finish(ledger: Ledger, endings: Iterable[Ending], now: datetime) -> set[Claim]:
    """Apply the endings whose claims hold."""
    tokens = ledger.tokens
    held = set()
    for ending in endings:
        job_id, token = claim = ending.claim
        if tokens.get(job_id) == token:
            _end(ledger, job_id, ending.outcome, ending.following, now)
            held.add(claim)
    ledger.pending.sweep()
    return held


def renew(ledger: Ledger, claims: Iterable[Claim], lease: float, now: datetime) -> set[Claim]:
    """Lease what is still held anew."""
    until = later(now, lease)
    held = {claim for claim in claims if ledger.tokens.get(claim.id) == claim.token}
    for job_id, _ in held:
        ledger.jobs[job_id] = snapshot.leased(ledger.jobs[job_id], until)
    return held


def expired(ledger: Ledger, limit: int, now: datetime) -> list[Expired]:
    """Running jobs whose lease is past, longest past first. Reads the running ones, which are as many as slots."""
    past = []
    for job_id in ledger.tokens:
        until = ledger.jobs[job_id].lease_until
        if until is not None and until <= now:
            past.append((until, job_id))
    return [Expired(Claim(job_id, ledger.tokens[job_id]), ledger.jobs[job_id]) for _, job_id in nsmallest(limit, past)]


def reclaim(ledger: Ledger, reclaims: Sequence[Reclaim], now: datetime) -> set[Claim]:
    """Apply the outcomes to expired jobs that nobody has renewed or ended meanwhile."""
    taken = set()
    for reclaim in reclaims:
        claim, seen = reclaim.expired.claim, reclaim.expired.job
        if ledger.tokens.get(claim.id) != claim.token:
            continue
        until = ledger.jobs[claim.id].lease_until
        if until is not None and until == seen.lease_until and until <= now:
            _end(ledger, claim.id, reclaim.outcome, reclaim.following, now)
            taken.add(claim)
    ledger.pending.sweep()
    return taken


def _end(ledger: Ledger, id: str, outcome: Outcome, following: NewJob | None, now: datetime) -> None:
    job = ledger.jobs[id]
    del ledger.tokens[id]
    match outcome:
        case Done():
            ledger.finish(snapshot.done(job, now, outcome.note), now)
        case Dead():
            ledger.finish(snapshot.dead(job, now, outcome.error), now)
        case RetryAfter():
            ledger.pend(snapshot.again(job, now, later(now, outcome.seconds), outcome.error), now)
            return
        case Released():
            run_at = later(now, outcome.seconds)
            ledger.pend(snapshot.released(job, run_at, interrupted=outcome.interrupted), now)
            return
        case _:
            assert_never(outcome)
    if following is not None:
        (answer,) = ledger.insert([following], now)
        if answer.created:
            ledger.intervals.remember_due(answer.job)
