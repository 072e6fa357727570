"""What moves jobs: enqueue, claim, renew, finish, reclaim (JobStore, E)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from treadle.core.job import Enqueued, Job, NewJob
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.store import Claim, Claimed, Demand, Ending, Expired, Reclaim
from treadle.core.transfer import fenced
from treadle.stores.postgres import rows
from treadle.stores.postgres.arrays import Texts
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.floors import Floors
from treadle.stores.postgres.part import Part
from treadle.stores.postgres.session import Session
from treadle.stores.postgres.storing import batches, storing

_CROSSINGS = 8
_SOON = 0.02  # seconds until jobs that others had locked are worth another look
_MOMENT = "20ms"  # what those who are not to wait for a key give others' transactions that are just about to end


class Moving(Part):
    """The hot path, and the taking back of what expired."""

    async def enqueue(self, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """Store the jobs; see `JobStore.enqueue` (E4, E6, E7, E9).

        A key that an open transaction of someone else holds makes it wait for that transaction.
        """
        if not jobs:
            return []

        async def work(session: Session, repeated: bool) -> list[Enqueued]:
            parts = list(batches(jobs))
            if len(parts) == 1 and (len(jobs) == 1 or all(job.key is None for job in jobs)):
                return await stored(session, jobs, now, repeated=repeated)  # one statement: atomic by itself
            async with session.transaction():
                return [answer for part in parts for answer in await stored(session, part, now, repeated=repeated)]

        return self._told(await self._runner.run(work, again=True))

    async def enqueue_unless_held(self, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued] | None:
        """As `enqueue`, but None, with nothing stored, where it would have to wait; see `KeysWait`."""

        async def work(session: Session, repeated: bool) -> list[Enqueued] | None:
            try:
                async with session.transaction():
                    await session.fetch("lock_timeout", _MOMENT)
                    return [answer for part in batches(jobs) for answer in await stored(session, part, now, repeated=repeated)]
            except psycopg.errors.LockNotAvailable:
                return None

        answers = await self._runner.run(work, again=True)
        return None if answers is None else self._told(answers)

    def _told(self, answers: list[Enqueued]) -> list[Enqueued]:
        if any(answer.created for answer in answers):
            self._arrived([answer.job for answer in answers if answer.created])
        return answers

    async def claim(
        self, token: str, demands: Sequence[Demand], *, worker: str, lease: float, now: datetime | None = None
    ) -> Claimed:
        """Take due jobs; see `JobStore.claim` (E3, E28).

        Never repeated by the store: where the answer was lost it raises `StoreUnavailable`, and `held` tells what was taken.
        """
        asked = [demand for demand in demands if demand.limit > 0]
        if not asked:
            return Claimed([], None)
        worker = rows.storable(worker)

        async def work(session: Session, _: bool) -> Claimed:
            if len(asked) == 1:
                return await _taken(session, self._floors_of(asked[0], now), asked[0], token, worker, lease, now)
            async with session.transaction():
                answers = [
                    await _taken(session, self._floors_of(demand, now), demand, token, worker, lease, now) for demand in asked
                ]
            soonest = [answer.next_in for answer in answers if answer.next_in is not None]
            return Claimed([job for answer in answers for job in answer.jobs], min(soonest, default=None))

        return await self._runner.run(work, again=False)

    def _floors_of(self, demand: Demand, now: datetime | None) -> Floors | None:
        """The floors for this demand; none on a clock of the caller's, whose claims are to be exact."""
        return self._floors.of(demand) if now is None else None

    async def held(self, tokens: Sequence[str]) -> list[tuple[Claim, Job]]:
        """The running jobs of these tokens, in order of claiming (E21)."""
        found = await self._read("held", rows.possible(tuple(tokens)))
        return [(rows.claim_of(row), rows.job(row)) for row in found]

    async def renew(self, claims: Sequence[Claim], lease: float, *, now: datetime | None = None) -> set[Claim]:
        """Lease the jobs anew; see `JobStore.renew` (E20)."""
        if not claims:
            return set()
        able = possible_claims(dict.fromkeys(claims))
        return held_of(await self._read("renew", now, *_pairs(able), rows.bounded(lease)), able)

    async def finish(self, endings: Sequence[Ending], *, now: datetime | None = None) -> set[Claim]:
        """Apply outcomes; see `JobStore.finish` (E22, T1). One round trip, unless intervals go on in it."""
        by_claim: dict[Claim, Ending] = {}
        for ending in endings:
            by_claim.setdefault(ending.claim, ending)
        claims = possible_claims(by_claim)
        if not claims:
            return set()
        ids, tokens = _pairs(claims)
        outcomes = [by_claim[claim].outcome for claim in claims]
        parameters: tuple[object, ...]
        if all(type(outcome) is Done and outcome.note is None for outcome in outcomes):
            name, parameters = "finish_done", (now, ids, tokens)
        else:
            texts = {" ".join(claim): rows.outcome(by_claim[claim].outcome) for claim in claims}
            name, parameters = "finish", (now, ids, json.dumps(texts, ensure_ascii=False))
        following = _following(by_claim)

        async def work(session: Session, repeated: bool) -> set[Claim]:
            if following:
                async with session.transaction():
                    held = held_of(await session.fetch(name, *parameters), claims)
                    await _go_on(session, [job for claim, job in following.items() if claim in held], now)
            else:
                held = held_of(await session.fetch(name, *parameters), claims)
            if repeated and len(held) < len(claims):
                held.update(Claim(*row) for row in await session.fetch("ended", ids, tokens))
            return held

        held = await self._runner.run(work, again=True)
        if following or any(isinstance(by_claim[claim].outcome, (RetryAfter, Released)) for claim in held):
            self._arrived([])  # what is due again from now on lies beyond every floor
        return held

    async def expired(self, limit: int, *, now: datetime | None = None) -> list[Expired]:
        """Running jobs whose lease is past; see `JobStore.expired` (E21)."""
        return [Expired(rows.claim_of(row), rows.job(row)) for row in await self._read("expired", now, max(limit, 0))]

    async def reclaim(self, reclaims: Sequence[Reclaim], *, now: datetime | None = None) -> set[Claim]:
        """Take expired jobs back; see `JobStore.reclaim` (E21)."""
        by_claim: dict[Claim, Reclaim] = {}
        for reclaim in reclaims:
            by_claim.setdefault(reclaim.expired.claim, reclaim)
        if not by_claim:
            return set()
        claims = possible_claims(by_claim)
        ids, tokens = _pairs(claims)
        texts = {
            f"{claim.id} {claim.token} {rows.micros(by_claim[claim].expired.job.lease_until)}": rows.outcome(
                by_claim[claim].outcome
            )
            for claim in claims
        }
        following = _following(by_claim)

        async def work(session: Session, repeated: bool) -> set[Claim]:
            async with session.transaction():
                taken = held_of(await session.fetch("reclaim", now, ids, json.dumps(texts, ensure_ascii=False)), claims)
                await _go_on(session, [job for claim, job in following.items() if claim in taken], now)
            if repeated and len(taken) < len(claims):
                taken.update(Claim(*row) for row in await session.fetch("reclaimed", ids, tokens))
            return taken

        taken = await self._runner.run(work, again=True)
        if taken:
            self._arrived()
        return taken


async def stored(session: Session, jobs: Sequence[NewJob], now: datetime | None, *, repeated: bool = False) -> list[Enqueued]:
    """Store a batch on a connection of the store's own."""
    steps = storing(jobs, now, repeated=repeated)
    try:
        name, parameters = next(steps)
        while True:
            name, parameters = steps.send(await session.fetch(name, *parameters, patient=True))
    except StopIteration as end:
        answers: list[Enqueued] = end.value
        return answers


async def _taken(
    session: Session, floors: Floors | None, demand: Demand, token: str, worker: str, lease: float, now: datetime | None
) -> Claimed:
    """The jobs of one demand. Where other claimers were in the way, what they left is asked for again, a few times."""
    names = None if demand.names is None else rows.possible(tuple(demand.names))
    queues = None if demand.queues is None else rows.possible(tuple(dict.fromkeys(demand.queues)))
    most = None if names is None or demand.names is None else [demand.names[name] for name in names]

    def asked() -> tuple[object, ...]:
        return now, queues, names, token, worker, rows.bounded(lease), demand.limit - len(jobs), most, demand.max_attempts

    jobs: list[Job] = []
    if floors is not None and (going_on := floors.now()):
        jobs += rows.claimed(await session.fetch("claim_on", *asked(), *map(list, zip(*going_on, strict=True))), worker)
    next_in: float | None = 0.0
    for _ in range(_CROSSINGS):
        if len(jobs) >= demand.limit:
            break
        found = await session.fetch("claim", *asked())
        if found:
            next_in, crossed, took = found[0][:3]
            jobs += rows.claimed(found, worker)
            if floors is not None:
                floors.looked(took, next((row[3] for row in found if row[3] is not None), None))
        else:
            [(next_in, fence)] = await session.fetch("next_in", now, queues, names)
            if fence is not None and (refused := fenced(fence)) is not None:
                raise refused  # who finds nothing in a store that was moved must be told
            crossed = next_in == 0.0
        if not crossed:
            break
    else:
        next_in = _SOON
    if floors is not None:
        floors.claimed(jobs)
    jobs.sort(key=rows.order)
    return Claimed(jobs, next_in)


async def _go_on(session: Session, copies: Sequence[NewJob], now: datetime | None) -> None:
    """Store the next copies of intervals, and note when they are due (T1, T3)."""
    if not copies:
        return
    made = sorted((one.job.schedule, one.job.run_at) for one in await stored(session, copies, now) if one.created)
    made = [(schedule, run_at) for schedule, run_at in made if schedule is not None]
    if made:
        await session.fetch("remember", [schedule for schedule, _ in made], [run_at.isoformat() for _, run_at in made])


def _following(by_claim: Mapping[Claim, Ending | Reclaim]) -> dict[Claim, NewJob]:
    """The next copies of intervals, by the claims of those that end (T1)."""
    return {
        claim: one.following
        for claim, one in by_claim.items()
        if one.following is not None and isinstance(one.outcome, (Done, Dead))
    }


def held_of(found: Sequence[rows.Row], claims: Iterable[Claim]) -> set[Claim]:
    """The claims that held, from the one row that tells how many did, and which unless all of them did."""
    [(number, some)] = found
    held = set(claims)
    if number == len(held):
        return held
    return {Claim(*pair) for pair in json.loads(some or "[]")}


def possible_claims(claims: Iterable[Claim]) -> list[Claim]:
    """The claims that the store can hold at all."""
    return [claim for claim in claims if rows.storable(claim.id) == claim.id and rows.storable(claim.token) == claim.token]


def _pairs(claims: Iterable[Claim]) -> tuple[Texts, Texts]:
    """Ids, and tokens beside them."""
    return Texts([claim.id for claim in claims]), Texts([claim.token for claim in claims])
