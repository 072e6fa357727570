"""The store's keys after random histories: every index agrees with the jobs, and nothing is left of what is gone."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta

import pytest
from tests.servers.valkey import ValkeyServer
from tests.stores.redis.audit import Audit, keys_of

from treadle.core.cron import Cron
from treadle.core.errors import SchemaTooNew
from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Key, NewJob, State
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval, Schedule
from treadle.core.store import Claim, Demand, Ending, Reclaim
from treadle.core.transitions import on_expired
from treadle.stores.redis import RedisStore, reading
from treadle.testing.contract import expect

START = datetime(2026, 1, 1, tzinfo=UTC)
OUTCOMES: tuple[Outcome, ...] = (
    Done(), Done("note"), Dead("E: no"), RetryAfter(0.0, "E: again"), RetryAfter(5.0, "E"), Released(), Released(3.0, True),
)  # fmt: skip


async def history(store: RedisStore, chance: random.Random, steps: int) -> None:
    now, number, held = START, 0, []
    for _ in range(steps):
        match chance.randrange(10):
            case 0 | 1 | 2:
                jobs = []
                for _ in range(chance.randint(1, 5)):
                    number += 1
                    key = chance.choice(
                        (None, Key("dedupe", "d"), Key("idempotency", chance.choice("ij")), Key("schedule", "s"))
                    )
                    name, queue = chance.choice("abc"), chance.choice(("default", "slow", "functions", "plugin:x"))
                    jobs.append(
                        NewJob(
                            f"{number:04d}", name, "{}", queue, chance.choice((0.0, 0.0, 5.0)), None, chance.choice((0, 0, 3)),
                            key=key, schedule="s" if key is not None and key.kind == "schedule" else None,
                        )
                    )  # fmt: skip
                await store.enqueue(jobs, now=now)
            case 3 | 4 | 5:
                queues = chance.choice((None, ("functions", "plugin:x", "slow")))
                names = chance.choice((None, {"a": 3, "b": 1}))
                token = f"t{number}-{chance.random()}"
                claimed = await store.claim(
                    token, [Demand(chance.randint(1, 4), queues, names)], worker="w", lease=4.0, now=now
                )
                held += [Claim(job.id, token) for job in claimed.jobs]
            case 6:
                chance.shuffle(held)
                ended, held = held[:3], held[3:]
                await store.finish([Ending(claim, chance.choice(OUTCOMES)) for claim in ended], now=now)
            case 7:
                now += timedelta(seconds=chance.choice((0.5, 2.0, 6.0)))
                if chance.random() < 0.5:
                    expired = await store.expired(3, now=now)
                    await store.reclaim([Reclaim(one, on_expired(one.job)) for one in expired], now=now)
                else:
                    await store.renew(held[:2], 4.0, now=now)
            case 8:
                await store.redrive(EVERYTHING, chance.choice(list(RedrivePolicy)), limit=2, now=now)
                await store.run_now(JobFilter(names=frozenset("c")), now=now)
            case 9:
                await store.delete(JobFilter(names=frozenset(chance.choice("abc"))), limit=2, now=now)


@pytest.mark.parametrize("seed", range(8))
def test_every_index_agrees_with_the_jobs(server: ValkeyServer, prefix: str, seed: int):
    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        chance = random.Random(seed)
        for _ in range(4):
            await history(store, chance, 30)
            Audit(server, prefix).check()
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("piece", [1, 2, 5])
def test_a_tally_made_of_small_pieces_agrees_with_the_jobs(
    server: ValkeyServer, prefix: str, piece: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reading, "NAMES_AT_ONCE", piece)
    monkeypatch.setattr(reading, "JOBS_AT_ONCE", piece)

    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        chance = random.Random(piece)
        for _ in range(4):
            await history(store, chance, 30)
            jobs = Audit(server, prefix).jobs.values()
            expect.same_tally(await store.tally(), jobs, "a tally is that of all jobs")
            due = min((job.run_at for job in jobs if job.state is State.PENDING), default=None)
            assert (await store.stats()).next_run_at == due
        server.client.delete(f"{{{prefix}}}:payload")
        expect.same_tally(await store.tally(), jobs, "a tally reads no payload")
        await store.close()

    asyncio.run(run())


def test_a_tally_counts_what_stays_while_other_jobs_move(server: ValkeyServer, prefix: str, monkeypatch: pytest.MonkeyPatch):
    """A tally is put together from parts, and yet nothing that nobody touches is left out or counted twice."""
    monkeypatch.setattr(reading, "NAMES_AT_ONCE", 20)
    monkeypatch.setattr(reading, "JOBS_AT_ONCE", 20)

    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        names = [f"n{n:03}" for n in range(300)]
        for delay in (0.0, 60.0):
            await store.enqueue([NewJob(f"{name}-{delay}", name, delay=delay) for name in names], now=START)
        taken = (await store.claim("t", [Demand(300)], worker="w", lease=60.0, now=START)).jobs
        await store.finish([Ending(Claim(job.id, "t"), Done()) for job in taken], now=START)
        finished = asyncio.Event()

        async def move() -> None:
            number = 0
            while not finished.is_set():
                number += 1
                await store.enqueue([NewJob(f"m{number:06}", f"x{number:06}")], now=START)
                claimed = await store.claim(f"m{number}", [Demand(1)], worker="w", lease=60.0, now=START)
                await store.finish([Ending(Claim(job.id, f"m{number}"), Done()) for job in claimed.jobs], now=START)
                await store.delete(JobFilter(ids=[f"m{number - 1:06}"]), now=START)

        moving = asyncio.create_task(move())
        for _ in range(5):
            counts = (await store.tally()).counts
            stayed = {(name, state): n for (_, name, state), n in counts.items() if name.startswith("n")}
            assert stayed == {(name, state): 1 for name in names for state in (State.PENDING, State.DONE)}
        finished.set()
        await moving
        await store.close()

    asyncio.run(run())


def test_nothing_is_left_of_jobs_that_are_gone(server: ValkeyServer, prefix: str):
    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        await history(store, random.Random(99), 60)
        late = START + timedelta(days=1)
        for one in await store.expired(1000, now=late):
            await store.reclaim([Reclaim(one, Dead("E"))], now=late)
        await store.put_document("n", "k", 1, expires_in=1.0, now=START)
        await store.delete_document("n", "k", now=START)
        await store.put_schedule(Schedule.of("s", Cron("* * * * *"), NewJob("", "a")))
        await store.delete_schedule("s")
        await store.delete(EVERYTHING, now=late)
        assert keys_of(server, prefix) == {"layout": "string"}
        await store.close()

    asyncio.run(run())


def test_expired_documents_are_thrown_out(server: ValkeyServer, prefix: str):
    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        for number in range(30):
            await store.put_document("old", f"k:{number}", "x", expires_in=1.0, now=START)
        late = START + timedelta(seconds=2)
        await store.put_document("new", "k", "x", now=late)
        await store.put_document("new", "k", "y", now=late)
        assert keys_of(server, prefix) == {
            "layout": "string",
            "documents:new": "hash",
            "document-keys:new": "zset",
            "namespaces": "set",
        }
        await store.close()

    asyncio.run(run())


def test_an_interval_leaves_two_small_notes(server: ValkeyServer, prefix: str):
    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        await store.ensure([(Interval.of(60.0, NewJob("", "tick")), "1")], now=START)
        Audit(server, prefix).check()
        await store.delete(EVERYTHING, now=START)
        assert keys_of(server, prefix) == {"layout": "string", "intervals": "hash", "interval-due": "hash"}
        await store.close()

    asyncio.run(run())


def test_old_jobs_are_found_by_age_though_some_are_deleted_on_the_way(server: ValkeyServer, prefix: str):
    """1,000 jobs of which many finished at one moment, half of them of a name that the prune leaves alone."""

    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        await store.enqueue([NewJob(f"{number:04d}", "ab"[number % 2]) for number in range(1000)], now=START)
        claimed = await store.claim("t", [Demand(1000)], worker="w", lease=60.0, now=START)
        for first in (0, 600):
            some = [Ending(Claim(job.id, "t"), Done()) for job in claimed.jobs[first : first + 600]]
            await store.finish(some, now=START + timedelta(seconds=first))
        old = JobFilter(names=frozenset("a"), older_than=10.0)
        assert await store.count(old, now=START + timedelta(seconds=10)) == 300
        assert await store.delete(old, now=START + timedelta(seconds=610)) == 500
        assert await store.count(EVERYTHING) == 500
        Audit(server, prefix).check()
        await store.close()

    asyncio.run(run())


def test_a_store_of_a_newer_layout_is_refused(server: ValkeyServer, prefix: str):
    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        server.command("SET", f"{{{prefix}}}:layout", "99")
        with pytest.raises(SchemaTooNew, match="layout 99"):
            await store.enqueue([NewJob("1", "a")])
        await store.close()

    asyncio.run(run())
