"""Finishing, reclaiming and renewing: outcomes applied where the claim still holds (E15, E20 to E22)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, assert_never

from treadle.core.clock import to_micros
from treadle.core.job import NewJob
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.store import Claim, Ending, Reclaim
from treadle.stores.sqlite.enqueueing import store_jobs
from treadle.stores.sqlite.moments import later
from treadle.stores.sqlite.rows import DEAD, DONE, READY, WAITING
from treadle.stores.sqlite.session import Session, as_json


class _Hold(NamedTuple):
    """A claim that holds, as `held_claims` answers it."""

    place: int
    seq: int
    attempts: int
    worker: str | None
    started_at: int | None


def finish(session: Session, endings: Sequence[Ending], now: int) -> set[Claim]:
    """Apply the outcomes whose claims hold; of two for one claim the first counts."""
    first = list({ending.claim: ending for ending in reversed(endings)}.values())
    holds = _holds(session.loaded("held_claims", claims=as_json([ending.claim for ending in first])))
    _settle(session, [(hold, first[hold.place].outcome, first[hold.place].following) for hold in holds], now)
    return {first[hold.place].claim for hold in holds}


def reclaim(session: Session, reclaims: Sequence[Reclaim], now: int) -> set[Claim]:
    """The same for expired jobs whose lease is unchanged and past (E21)."""
    first = list({one.expired.claim: one for one in reversed(reclaims)}.values())
    claims = [(*one.expired.claim, _micros(one)) for one in first]
    holds = _holds(session.loaded("expired_claims", claims=as_json(claims), now=now))
    _settle(session, [(hold, first[hold.place].outcome, first[hold.place].following) for hold in holds], now)
    return {first[hold.place].expired.claim for hold in holds}


def renew(session: Session, claims: Sequence[Claim], lease: float, now: int) -> set[Claim]:
    """Lease what is held from now on (E20)."""
    asked = list(dict.fromkeys(claims))
    holds = _holds(session.loaded("held_claims", claims=as_json(asked)))
    if holds:
        session.rows("renew", seqs=as_json([hold.seq for hold in holds]), lease_until=later(now, lease))
    return {asked[hold.place] for hold in holds}


def _settle(session: Session, decided: Sequence[tuple[_Hold, Outcome, NewJob | None]], now: int) -> None:
    plain: list[int] = []
    outcomes: list[tuple[Any, ...]] = []
    failures: list[tuple[Any, ...]] = []
    following: list[NewJob] = []
    for hold, outcome, copy in decided:
        match outcome:
            case Done(note=None):
                plain.append(hold.seq)
            case Done(note=note):
                outcomes.append((hold.seq, DONE, None, now, 0, 0, None, note))
            case RetryAfter(seconds=seconds, error=error):
                outcomes.append((hold.seq, *_again(now, seconds), None, 0, 0, error, None))
                failures.append((hold.seq, hold.attempts, hold.worker, hold.started_at, error))
            case Dead(error=error):
                outcomes.append((hold.seq, DEAD, None, now, 0, 0, error, None))
                failures.append((hold.seq, hold.attempts, hold.worker, hold.started_at, error))
            case Released(seconds=seconds, interrupted=interrupted):
                outcomes.append((hold.seq, *_again(now, seconds), None, 1, int(interrupted), None, None))
            case _:
                assert_never(outcome)
        if copy is not None and isinstance(outcome, (Done, Dead)):
            following.append(copy)
    if plain:
        session.rows("complete", seqs=as_json(plain), now=now)
    if outcomes:
        session.rows("settle", outcomes=as_json(outcomes))
        session.arrived = session.arrived or any(row[1] in (READY, WAITING) for row in outcomes)
    if failures:
        session.rows("add_failures", failures=as_json(failures), now=now)
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


def _holds(rows: Iterable[Sequence[Any]]) -> list[_Hold]:
    return [_Hold(*row) for row in rows]
