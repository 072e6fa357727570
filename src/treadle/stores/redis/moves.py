"""Moving jobs through a worker: batches cut into pieces that no server feels, each piece one script (S7)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from treadle.core.draft import answer, pending_job
from treadle.core.job import Enqueued, Job, NewJob
from treadle.core.outcome import Dead
from treadle.core.store import Claim, Claimed, Demand, Ending, Expired, Reclaim
from treadle.stores.redis import record, wire
from treadle.stores.redis.link import Link
from treadle.stores.redis.moment import later, moment, present, span, surely_at
from treadle.stores.redis.pieces import pieces
from treadle.stores.redis.walk import RUNNING, Walk
from treadle.stores.redis.wire import Argument

ENQUEUED_AT_ONCE = 1000  # E9: atomic per thousand
CLAIMED_AT_ONCE = 500  # a claim costs the server least for each job, an ending most
ENDED_AT_ONCE = 250
LOST = Dead(f"Redis has lost the payload of this job: {record.CAUSE}")


class Moves:
    """The part of the store that enqueues, claims and ends."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._walk = Walk(link)

    async def enqueue(self, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """Store the jobs, a thousand (or 16 MiB) in one step; see `JobStore.enqueue` (E4, E6, E7, E9)."""
        answers: list[Enqueued] = []
        cut = list(pieces(jobs, ENQUEUED_AT_ONCE, lambda job: len(job.payload_json)))
        under_way: asyncio.Task[Any] | None = None
        try:
            for place, piece in enumerate(cut):
                arguments = [present(now), *wire.new_jobs(piece)]
                if under_way is not None:
                    answers += _answers(cut[place - 1], *await under_way)
                if place == len(cut) - 1:
                    return answers + _answers(piece, *await self._link.call("enqueue", *arguments))
                # While the server is at it the next piece is made; never are two under way at once, since a key belongs
                # to the first job of a batch that has it.
                under_way = await self._begun("enqueue", arguments)
            return answers
        finally:
            if under_way is not None:
                under_way.cancel()

    async def claim(
        self, token: str, demands: Sequence[Demand], *, worker: str, lease: float, now: datetime | None = None
    ) -> Claimed:
        """Take due jobs, 500 in one step; see `JobStore.claim` (E3, E28)."""
        jobs: list[Job] = []
        wanted = [demand for demand in demands if demand.limit > 0]
        while True:
            arguments: list[Argument] = [present(now), token, wire.clean(worker), span(lease), CLAIMED_AT_ONCE, len(wanted)]
            for demand in wanted:
                arguments += _demand(demand)
            wait, stopped, taken, whole = await self._link.call("claim", *arguments)
            jobs += record.jobs(await self._whole(whole, now))
            if not stopped:
                return Claimed(jobs, None if wait == "-1" else int(wait) / 1_000_000)
            wanted = [replace(demand, limit=demand.limit - number) for demand, number in zip(wanted, taken, strict=True)]

    async def held(self, tokens: Sequence[str]) -> list[tuple[Claim, Job]]:
        """The running jobs of these tokens (E21). It walks through the running ones, which are as many as slots."""
        found: list[tuple[Claim, Job]] = []
        if not tokens:
            return found
        async for ids in self._walk.pages(RUNNING):
            whole = await self._link.call("held", *wire.listed(tokens), *wire.listed(ids))
            found += [(claim, job) for claim, job in _held(await self._whole(whole, None))]
        return found

    async def renew(self, claims: Sequence[Claim], lease: float, *, now: datetime | None = None) -> set[Claim]:
        """Lease the jobs anew; see `JobStore.renew` (E20)."""
        held: set[Claim] = set()
        for piece in pieces(claims, CLAIMED_AT_ONCE):
            held.update(piece[place - 1] for place in await self._link.call("renew", *renewal(piece, lease, now)))
        return held

    async def finish(self, endings: Sequence[Ending], *, now: datetime | None = None) -> set[Claim]:
        """Apply outcomes, 250 in one step; see `JobStore.finish` (E22, T1)."""
        held: set[Claim] = set()
        for piece in pieces(endings, ENDED_AT_ONCE, _weight):
            arguments = [present(now), *wire.endings(piece)]
            held.update(piece[place - 1].claim for place in await self._link.call("finish", *arguments))
        return held

    async def expired(self, limit: int, *, now: datetime | None = None) -> list[Expired]:
        """Running jobs whose lease is past; see `JobStore.expired` (E21)."""
        found: dict[str, Expired] = {}
        offset = 0
        while len(found) < limit:
            most = min(CLAIMED_AT_ONCE, limit - len(found))
            seen, whole = await self._link.call("expired", present(now), offset, most)
            found |= {job.id: Expired(claim, job) for claim, job in _held(await self._whole(whole, now))}
            offset += seen
            if seen == 0:
                break
        return list(found.values())

    async def reclaim(self, reclaims: Sequence[Reclaim], *, now: datetime | None = None) -> set[Claim]:
        """Take expired jobs back, 250 in one step; see `JobStore.reclaim` (E21)."""
        taken: set[Claim] = set()
        for piece in pieces(reclaims, ENDED_AT_ONCE, _weight):
            arguments: list[Argument] = [present(now), len(piece)]
            for reclaim in piece:
                lease_until = reclaim.expired.job.lease_until
                arguments += [*reclaim.expired.claim, "" if lease_until is None else moment(lease_until)]
                arguments += wire.outcome(reclaim.outcome, reclaim.following)
            taken.update(piece[place - 1].expired.claim for place in await self._link.call("reclaim", *arguments))
        return taken

    async def _whole(self, whole: record.Whole, now: datetime | None) -> record.Whole:
        """Of running jobs those that can be run: one whose payload is gone is dead, and in nobody's way."""
        whole, lost = record.parted(whole)
        if lost:
            await self.finish([Ending(Claim(*one), LOST) for one in lost], now=now)
        return whole

    async def _begun(self, script: str, arguments: Sequence[Argument]) -> asyncio.Task[Any]:
        """A call that the server has got, or that has failed."""
        sent = asyncio.Event()
        call = asyncio.create_task(self._link.call(script, *arguments, sent=sent.set))
        call.add_done_callback(lambda _: sent.set())
        await sent.wait()
        return call


def renewal(claims: Sequence[Claim], lease: float, now: datetime | None) -> list[Argument]:
    """The arguments of scripts/renew.lua."""
    arguments: list[Argument] = [present(now), span(lease), len(claims)]
    for claim in claims:
        arguments += claim
    return arguments


def _demand(demand: Demand) -> list[Argument]:
    # A queue named twice would have its jobs taken twice.
    queues = None if demand.queues is None else tuple(dict.fromkeys(demand.queues))
    names = None if demand.names is None else tuple(demand.names)
    attempts = () if demand.names is None else tuple(demand.names.values())
    return [demand.limit, *wire.listed(queues), *wire.listed(names), *attempts, demand.max_attempts]


def _held(whole: record.Whole) -> Iterator[tuple[Claim, Job]]:
    for job, token in zip(record.jobs(whole), record.tokens(whole), strict=True):
        yield Claim(job.id, token), job


def _answers(piece: Sequence[NewJob], stored_at: str, old: Sequence[int], whole: record.Whole) -> list[Enqueued]:
    now = surely_at(stored_at)
    holders = dict(zip(old[::2], old[1::2], strict=True))
    found = record.jobs(whole)
    answers = []
    for place, new in enumerate(piece, 1):
        if place in holders:
            holder = found[holders[place] - 1]
            answers.append(answer(holder, created=False))
        else:
            run_at = new.run_at
            due = surely_at(later(stored_at, new.delay)) if run_at is None else run_at.astimezone(UTC)
            answers.append(answer(pending_job(new, now, due), created=True))
    return answers


def _weight(ending: Ending | Reclaim) -> int:
    return 0 if ending.following is None else len(ending.following.payload_json)
