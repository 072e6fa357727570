"""Finishing, reclaiming and renewing: outcomes applied where the claim still holds (E15, E20 to E22)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from treadle.core.clock import to_micros
from treadle.core.job import NewJob
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.store import Claim, Ending, Reclaim
from treadle.stores.sqlite.enqueueing import store_jobs
from treadle.stores.sqlite.moments import later
from treadle.stores.sqlite.rows import DEAD, DONE, READY, WAITING
from treadle.stores.sqlite.session import Session, as_json


def finish(session: Session, endings: Sequence[Ending], now: int) -> set[Claim]:
    """Apply the outcomes whose claims hold; of two for one claim the first counts."""
    first = {ending.claim: ending for ending in reversed(endings)}
    held = _held(session, list(first))
    _settle(session, [(seq, first[claim]) for claim, seq in held.items()], now)
    return set(held)


def reclaim(session: Session, reclaims: Sequence[Reclaim], now: int) -> set[Claim]:
    """The same for expired jobs whose lease is unchanged and past (E21)."""
    first = {one.expired.claim: one for one in reversed(reclaims)}
    claims = as_json([(*claim, _micros(one)) for claim, one in first.items()])
    held = {Claim(job_id, token): seq for seq, job_id, token in session.loaded("expired_claims", claims=claims, now=now)}
    _settle(session, [(seq, first[claim]) for claim, seq in held.items()], now)
    return set(held)


def renew(session: Session, claims: Sequence[Claim], lease: float, now: int) -> set[Claim]:
    """Lease what is held from now on (E20)."""
    held = _held(session, claims)
    if held:
        session.rows("renew", seqs=as_json(list(held.values())), lease_until=later(now, lease))
    return set(held)


def _held(session: Session, claims: Sequence[Claim]) -> dict[Claim, int]:
    """Those of the claims that hold, and the seqs of their jobs."""
    tokens = dict(claims)
    seqs = session.loaded("held_claims", claims=as_json(tokens))
    held = {Claim(job_id, tokens[job_id]): seq for job_id, seq in seqs.items()}
    if len(tokens) < len(claims):  # where two claims are of one job, only the last was asked about
        held |= _held(session, [claim for claim in claims if tokens[claim.id] != claim.token])
    return held


def _settle(session: Session, decided: Sequence[tuple[int, Ending | Reclaim]], now: int) -> None:
    plain: list[int] = []
    outcomes: list[tuple[Any, ...]] = []
    failures: list[tuple[Any, ...]] = []
    following: list[NewJob] = []
    for seq, ending in decided:
        outcome = ending.outcome
        match outcome:
            case Done(note=None):
                plain.append(seq)
            case Done(note=note):
                outcomes.append((seq, DONE, None, now, 0, 0, None, note))
            case RetryAfter(seconds=seconds, error=error):
                outcomes.append((seq, *_again(now, seconds), None, 0, 0, error, None))
                failures.append((seq, error))
            case Dead(error=error):
                outcomes.append((seq, DEAD, None, now, 0, 0, error, None))
                failures.append((seq, error))
            case Released(seconds=seconds, interrupted=interrupted):
                outcomes.append((seq, *_again(now, seconds), None, 1, int(interrupted), None, None))
            case _:
                assert_never(outcome)
        if ending.following is not None and isinstance(outcome, (Done, Dead)):
            following.append(ending.following)
    if failures:
        session.rows("add_failures", failures=as_json(failures), now=now)
    if plain:
        session.rows("complete", seqs=as_json(plain), now=now)
    if outcomes:
        session.rows("settle", outcomes=as_json(outcomes))
        session.arrived = session.arrived or any(row[1] in (READY, WAITING) for row in outcomes)
    if following:
        store_copies(session, following, now)


def store_copies(session: Session, copies: Sequence[NewJob], now: int) -> None:
    """Store the next copies of intervals, after their last ones have given up the key, and remember when they are due (T1)."""
    stored = store_jobs(session, copies, now)
    for place, copy in enumerate(copies):
        if place not in stored.holders and copy.schedule is not None:
            session.rows("interval_due", schedule=copy.schedule, due=stored.due[place])


def _again(now: int, seconds: float) -> tuple[int, int]:
    """State and due time of a job that is pending again."""
    run_at = later(now, max(0.0, seconds))
    return (READY if run_at <= now else WAITING), run_at


def _micros(one: Reclaim) -> int | None:
    return None if one.expired.job.lease_until is None else to_micros(one.expired.job.lease_until)
