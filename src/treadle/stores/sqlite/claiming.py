"""Claiming: promote what has become due, take the best, and tell when to come back (E3, E28)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core.policies.limits import FUNCTIONS_QUEUE, PLUGIN_QUEUE_PREFIX
from treadle.core.store import Demand
from treadle.stores.sqlite.fencing import open_only
from treadle.stores.sqlite.moments import later
from treadle.stores.sqlite.rows import (
    ATTEMPTS,
    LEASE_UNTIL,
    LONG_PAYLOAD,
    MAX_ATTEMPTS,
    NAME,
    RUNNING,
    SEQ,
    STARTED_AT,
    STATE,
    WORKER,
    LoadedRow,
    with_payloads,
)
from treadle.stores.sqlite.session import Session, as_json

# Jobs made ready in one claim: about 30 ms of work. Beyond it, jobs of a higher priority that have just become due
# may wait for a later claim.
_PROMOTED = 4096

FACES = {"functions": FUNCTIONS_QUEUE, "plugins": PLUGIN_QUEUE_PREFIX}


class Taken(NamedTuple):
    """The rows that a claim took, in its order, and the seconds until the next job is due."""

    rows: Sequence[LoadedRow]
    next_in: float | None


class Terms(NamedTuple):
    """The terms of a claim."""

    token: str
    demands: Sequence[Demand]
    worker: str
    lease: float


def look(session: Session, terms: Terms, now: int) -> Taken | None:
    """The answer to a claim that has nothing to take, without a lock; None where there may be something."""
    next_at: list[int] = []
    for demand in terms.demands:
        if demand.limit > 0:
            kinds = _kinds(demand)
            waiting, heads = _ahead(session, kinds, 1, now)
            if heads or (waiting is not None and waiting <= now):
                return None
            next_at += _known(waiting, session.value("claim_next_ready", now=now, **kinds))
    open_only(session)  # who finds nothing in a store that was moved must be told
    return Taken((), _seconds(next_at, now))


def take(session: Session, terms: Terms, now: int) -> Taken:
    """Claim for each demand in turn."""
    rows: list[LoadedRow] = []
    next_at: list[int] = []
    for demand in terms.demands:
        if demand.limit > 0:
            taken, upcoming = _serve(session, demand, terms, now)
            rows += taken
            next_at += upcoming
    if not rows:
        open_only(session)
    return Taken(rows, _seconds(next_at, now))


def _serve(session: Session, demand: Demand, terms: Terms, now: int) -> tuple[list[LoadedRow], list[int]]:
    """Take what one demand gets; also the moments that may be the next at which there is something for it."""
    kinds = _kinds(demand)
    waiting, heads = _ahead(session, kinds, demand.limit + 1, now)
    if waiting is not None and waiting <= now:
        session.rows("claim_promote", now=now, bound=_PROMOTED, **kinds)
        waiting, heads = _ahead(session, kinds, demand.limit + 1, now)
    taken = heads[: demand.limit]
    if taken:
        with_payloads(session, taken)
        _run(session, demand, terms, taken, now)
    if len(heads) > demand.limit:
        return taken, [now]
    return taken, _known(waiting, session.value("claim_next_ready", now=now, **kinds))


def _ahead(session: Session, kinds: dict[str, Any], limit: int, now: int) -> tuple[int | None, list[LoadedRow]]:
    """When the first waiting job becomes due, and the best ready ones."""
    [(waiting, heads)] = session.rows("claim_look", now=now, limit=limit, long=LONG_PAYLOAD, **kinds)
    return waiting, json.loads(heads)


def _run(session: Session, demand: Demand, terms: Terms, rows: Sequence[LoadedRow], now: int) -> None:
    """Make these jobs running, in the table and in the rows that were read before."""
    until = later(now, terms.lease)
    by_bound: dict[int, list[int]] = {}
    for row in rows:
        bound = demand.max_attempts if demand.names is None else demand.names[row[NAME]]
        by_bound.setdefault(bound, []).append(row[SEQ])
        if row[MAX_ATTEMPTS] is None:
            row[MAX_ATTEMPTS] = bound
        row[STATE], row[STARTED_AT], row[WORKER], row[LEASE_UNTIL] = RUNNING, now, terms.worker, until
        row[ATTEMPTS] += 1
    for bound, seqs in by_bound.items():
        session.rows(
            "claim_take",
            seqs=as_json(seqs),
            max_attempts=bound,
            now=now,
            worker=terms.worker,
            token=terms.token,
            lease_until=until,
        )


def _kinds(demand: Demand) -> dict[str, Any]:
    """The parameters of `kinds`: which queues and names the demand means."""
    return {
        "queues": None if demand.queues is None else as_json(list(dict.fromkeys(demand.queues))),
        "names": None if demand.names is None else as_json(list(demand.names)),
        "of_faces": 0,
        **FACES,
    }


def _known(*moments: int | None) -> list[int]:
    return [moment for moment in moments if moment is not None]


def _seconds(next_at: list[int], now: int) -> float | None:
    return max(0.0, (min(next_at) - now) / 1_000_000) if next_at else None
