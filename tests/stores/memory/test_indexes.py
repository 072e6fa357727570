"""The memory store's indexes against the plain reading of all jobs, over random histories."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Job, Key, NewJob, State
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.policies.limits import owned_by_a_face
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Claim, Demand, Ending, Reclaim
from treadle.stores.memory import MemoryStore, tallying
from treadle.testing.contract import expect

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("a", "b", "c")
QUEUES = ("default", "slow", "functions")


class History:
    """A store under random operations, each answer compared with what all jobs, read one by one, say it should be."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = MemoryStore()
        self.now = START
        self.token = 0
        self.held: list[Claim] = []

    async def all(self) -> list[Job]:
        return list(self.store._ledger.jobs.values())

    def some(self, values: tuple[str, ...]) -> frozenset[str]:
        return frozenset(self.chance.sample(values, self.chance.randint(1, len(values))))

    def filter(self) -> JobFilter:
        chance = self.chance
        return JobFilter(
            ids=None if chance.random() < 0.8 else [f"{chance.randint(0, 60):03}" for _ in range(20)],
            states=None if chance.random() < 0.4 else frozenset(chance.sample(list(State), chance.randint(1, 2))),
            names=None if chance.random() < 0.6 else self.some(NAMES),
            queues=None if chance.random() < 0.8 else self.some(QUEUES),
            older_than=None if chance.random() < 0.6 else chance.choice([0.0, 5.0, 30.0, 1e15]),
            keyed=chance.choice([None, None, None, True, False]),
        )

    async def matching(self, which: JobFilter, *states: State) -> list[Job]:
        if which.older_than == 1e15:  # before the year 1, which the predicate itself cannot say
            return []
        jobs = [job for job in await self.all() if which.matches(job, self.now) and job.state in states]
        return sorted(jobs, key=lambda job: job.id)

    async def enqueue(self) -> None:
        chance = self.chance
        new = [
            NewJob(
                f"{chance.randint(0, 400):03}",
                chance.choice(NAMES),
                queue=chance.choice(QUEUES),
                priority=chance.choice([0, 0, 5, -5]),
                delay=chance.choice([0.0, 0.0, 3.0, 20.0]),
                run_at=chance.choice([None, None, None, self.now - timedelta(seconds=chance.randint(0, 9))]),
                key=chance.choice([None, Key("dedupe", chance.choice("xy")), Key("idempotency", chance.choice("xyz"))]),
            )
            for _ in range(chance.randint(1, 12))
        ]
        for wanted, answer in zip(new, await self.store.enqueue(new, now=self.now), strict=True):
            if answer.created:
                assert (answer.id, answer.job) == (wanted.id, wanted.stored(answer.job.created_at, answer.job.run_at))
            else:
                assert answer.job.id == wanted.id or (answer.job.name, answer.job.key) == (wanted.name, wanted.key)

    async def claim(self) -> None:
        chance = self.chance
        demand = Demand(
            chance.randint(0, 15),
            queues=None if chance.random() < 0.5 else tuple(self.some(QUEUES)),
            names=None if chance.random() < 0.5 else dict.fromkeys(self.some((*NAMES, "unknown")), 7),
        )
        wanted = [
            job
            for job in await self.all()
            if job.state is State.PENDING
            and (not owned_by_a_face(job.queue) if demand.queues is None else job.queue in demand.queues)
            and (demand.names is None or job.name in demand.names)
        ]
        due = sorted((job for job in wanted if job.run_at <= self.now), key=lambda job: (-job.priority, job.run_at, job.id))
        self.token += 1
        token = f"t{self.token}"
        claimed = await self.store.claim(token, [demand], worker="w", lease=10.0, now=self.now)
        assert [job.id for job in claimed.jobs] == [job.id for job in due[: demand.limit]]
        left = [job.run_at for job in wanted if job not in due[: demand.limit]]
        assert claimed.next_in == (max(0.0, (min(left) - self.now).total_seconds()) if left else None)
        self.held += [Claim(job.id, token) for job in claimed.jobs]

    async def finish(self) -> None:
        chance = self.chance
        chance.shuffle(self.held)
        outcomes: list[Outcome] = [Done(), Done("note"), Dead("e"), RetryAfter(5, "e"), RetryAfter(0, "e"), Released(0.0, True)]
        ending = [Ending(claim, chance.choice(outcomes)) for claim in self.held[:6]]
        running = {Claim(job_id, token) for job_id, token in self.store._ledger.tokens.items()}
        assert await self.store.finish(ending, now=self.now) == {one.claim for one in ending} & running
        self.held = self.held[6:]

    async def reclaim(self) -> None:
        past = [job for job in await self.all() if job.lease_until is not None and job.lease_until <= self.now]
        expired = await self.store.expired(3, now=self.now)
        past.sort(key=lambda job: (job.lease_until, job.id))
        assert [one.job for one in expired] == past[:3]
        again = [Reclaim(one, RetryAfter(0.0, "late")) for one in expired]
        assert await self.store.reclaim(again, now=self.now) == {one.claim for one in expired}
        assert await self.store.reclaim(again, now=self.now) == set()

    async def look(self) -> None:
        which, limit = self.filter(), self.chance.randint(1, 30)
        found = (await self.matching(which, *State))[::-1]
        assert await self.store.find(which, limit=limit, now=self.now) == found[:limit]
        assert (
            await self.store.find(which, limit=limit, before="200", now=self.now) == [j for j in found if j.id < "200"][:limit]
        )
        assert await self.store.count(which, now=self.now) == len(found)

    async def change(self) -> None:
        which, limit = self.filter(), self.chance.choice([None, 1, 5])
        match self.chance.randint(0, 2):
            case 0:
                gone = (await self.matching(which, State.PENDING, State.DONE, State.DEAD))[:limit]
                assert await self.store.delete(which, limit=limit, now=self.now) == len(gone)
                assert not await self.store.get([job.id for job in gone])
            case 1:
                dead = (await self.matching(which, State.DEAD))[:limit]
                redriven = await self.store.redrive(which, RedrivePolicy.RESET, limit=limit, now=self.now)
                assert sorted((*redriven.revived, *redriven.dropped)) == [job.id for job in dead]
            case _:
                pending = await self.matching(which, State.PENDING)
                assert await self.store.run_now(which, now=self.now) == len(pending)

    async def check(self) -> None:
        jobs = await self.all()
        stats = await self.store.stats(now=self.now)
        numbers = [sum(job.state is state for job in jobs) for state in State]
        assert [stats.pending, stats.running, stats.done, stats.dead] == numbers
        pending = [job for job in jobs if job.state is State.PENDING]
        assert stats.next_run_at == min((job.run_at for job in pending), default=None)
        expect.same_tally(await self.store.tally(), jobs, "a tally is that of all jobs")
        assert await self.store.pending_names() == sorted({j.name for j in pending if not owned_by_a_face(j.queue)})
        due = {job.queue for job in pending if job.run_at <= self.now}
        assert await self.store.due(QUEUES, now=self.now) == due
        holders = {
            (j.name, j.key.kind, j.key.text): j.id for j in jobs if j.key and (j.key.kind == "idempotency" or j.lease_until)
        }
        holders |= {(j.name, j.key.kind, j.key.text): j.id for j in pending if j.key}
        assert self.store._ledger.keys == holders
        self.bounded(len(jobs))

    def bounded(self, jobs: int) -> None:
        ledger = self.store._ledger
        # A claim leaves the sweeping of the pending ones to the next change that adds or deletes.
        assert len(ledger.pending) <= 2 * jobs + 64 + 12
        rolls = [*ledger.finished.values(), *ledger.ages.values(), *ledger.by_name.values()]
        assert all(len(roll) <= 2 * roll.live + 64 + 12 for roll in rolls)
        assert all(roll.live <= jobs for roll in rolls)
        assert ledger.lanes.kept() <= 2 * ledger.pending.live + 17 * 9


@pytest.mark.parametrize("seed", range(12))
def test_every_answer_is_what_reading_all_jobs_says(seed: int) -> None:
    async def main() -> None:
        history = History(seed)
        steps = [history.enqueue, history.enqueue, history.claim, history.finish, history.reclaim, history.look, history.change]
        for _ in range(400):
            await history.chance.choice(steps)()
            await history.check()
            history.now += timedelta(seconds=history.chance.choice([0, 0, 0.5, 4]))

    asyncio.run(main())


def test_a_filter_by_age_finds_the_same_through_either_index() -> None:
    async def main() -> None:
        store = MemoryStore()
        for number in range(200):
            at = START + timedelta(seconds=number * 37 % 200)  # finished in another order than enqueued
            await store.enqueue([NewJob(f"{number:03}", "a")], now=START)
            await store.claim(f"{number}", [Demand(1)], worker="w", lease=60, now=START)
            await store.finish([Ending(Claim(f"{number:03}", f"{number}"), Done())], now=at)
        for age in (199, 150, 10, 0):
            which = JobFilter(states=frozenset({State.DONE}), older_than=age)
            now = START + timedelta(seconds=199)
            expected = [job for job in await store.find(EVERYTHING, limit=200) if which.matches(job, now)]
            for limit in (1, 7, 200):
                assert await store.find(which, limit=limit, now=now) == expected[:limit]
                assert await store.find(replace(which, states=None), limit=limit, now=now) == expected[:limit]

    asyncio.run(main())


def test_of_two_demands_the_second_may_take_what_the_first_left() -> None:
    async def main() -> None:
        store = MemoryStore()
        await store.enqueue([NewJob("1", "a"), NewJob("2", "a"), NewJob("3", "a", delay=9)], now=START)
        claimed = await store.claim("t", [Demand(1), Demand(10)], worker="w", lease=60, now=START)
        assert ([job.id for job in claimed.jobs], claimed.next_in) == (["1", "2"], 9.0)

    asyncio.run(main())


def test_a_tally_of_many_jobs_is_of_one_moment_and_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallying, "_AT_ONCE", 7)

    async def main() -> None:
        store = MemoryStore()
        await store.enqueue([NewJob(f"{number:03}", NAMES[number % 3]) for number in range(100)], now=START)
        before = await store.find(EVERYTHING, limit=200)
        slow = asyncio.create_task(store.tally())
        await asyncio.sleep(0)  # so that it begins
        turns = 0
        while not slow.done():
            await store.enqueue([NewJob(f"new-{turns}", "a")], now=START)
            await store.delete(JobFilter(ids=[f"{turns:03}"]))
            await asyncio.sleep(0)
            turns += 1
        assert turns > 10
        expect.same_tally(await slow, before, "a tally is of the moment when it began")
        expect.same_tally(await store.tally(), await store.find(EVERYTHING, limit=200), "the next one is of another")

    asyncio.run(main())
