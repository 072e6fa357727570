"""Large numbers: no call holds the server up, and what nobody asked for costs nothing (S7, S8; scenario 95)."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.servers.valkey import ValkeyServer, serving

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import NewJob, State
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending, Reclaim
from treadle.core.transitions import on_expired
from treadle.stores.redis import RedisStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SLOW = 100_000  # microseconds


def slowest(server: ValkeyServer) -> int:
    return max((one["duration"] for one in server.client.slowlog_get(100)), default=0)


@pytest.mark.slow
def test_twenty_thousand_at_once_hold_no_call_up():
    async def run() -> None:
        store = RedisStore(server.url)
        jobs = [NewJob(f"{n:05d}", "a", f'"{n}"', delay=10.0) for n in range(20_000)]
        assert all(one.created for one in await store.enqueue(jobs, now=NOW))
        now = NOW + timedelta(seconds=10)  # all are due at one moment
        lost = await store.claim("lost", [Demand(10_000)], worker="w", lease=5.0, now=now)
        assert [job.id for job in lost.jobs] == [job.id for job in jobs[:10_000]]
        now += timedelta(seconds=6)
        expired = await store.expired(10_000, now=now)
        assert len(expired) == 10_000
        taken = await store.reclaim([Reclaim(one, on_expired(one.job)) for one in expired], now=now)
        assert len(taken) == 10_000
        number = 0
        while claimed := (await store.claim(f"t{number}", [Demand(5_000)], worker="w", lease=60.0, now=now)).jobs:
            await store.finish([Ending(Claim(job.id, f"t{number}"), Done()) for job in claimed], now=now)
            number += 1
        assert await store.count(JobFilter(states=frozenset({State.DONE}))) == 20_000
        assert (await store.tally()).counts == {("default", "a", State.DONE): 20_000}
        assert await store.delete(JobFilter(older_than=60.0), now=now + timedelta(seconds=60)) == 20_000
        print(f"20,000 due at once, 10,000 expired: the slowest call took {slowest(server) / 1000:.1f} ms")
        assert slowest(server) < SLOW
        await store.close()

    with serving({"slowlog-log-slower-than": "1000", "slowlog-max-len": "100"}) as server:
        asyncio.run(run())


def commands(server: ValkeyServer) -> int:
    return sum(one["calls"] for one in server.client.info("commandstats").values())


@pytest.mark.slow
def test_what_nobody_asked_for_costs_a_claim_nothing():
    """Due jobs of unknown names, and future ones of higher priority, are as many commands as none."""

    async def cost(store: RedisStore) -> int:
        before = commands(server)
        claimed = await store.claim("t", [Demand(1, None, {"known": 5})], worker="w", lease=60.0, now=NOW)
        assert [job.name for job in claimed.jobs] == ["known"]
        return commands(server) - before

    async def run() -> None:
        store = RedisStore(server.url)
        await store.enqueue([NewJob(f"k{n}", "known") for n in range(10)], now=NOW)
        await cost(store)
        alone = await cost(store)
        future = NOW + timedelta(days=1)
        piles = [NewJob(f"u{n:05d}", f"unknown-{n % 500}", priority=9) for n in range(10_000)]
        piles += [NewJob(f"f{n:05d}", "known", priority=9, run_at=future) for n in range(10_000)]
        await store.enqueue(piles, now=NOW)
        assert await cost(store) == alone
        started = time.perf_counter()
        stats = await store.stats(now=NOW)
        listed = await store.find(JobFilter(states=frozenset({State.RUNNING})), limit=10, now=NOW)
        print(f"stats and a list beside 20,000 jobs: {(time.perf_counter() - started) * 1000:.1f} ms")
        assert (stats.pending, stats.running, stats.next_run_at, len(listed)) == (20_007, 3, NOW, 3)
        assert stats.duplicate_names == 501
        assert next(iter(stats.duplicates)) == "known"
        await store.close()

    with serving() as server:
        asyncio.run(run())


def test_a_claim_merges_more_kinds_than_it_reads_at_once(server: ValkeyServer, prefix: str):
    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        jobs = [NewJob(f"{n * 7919 % 3000:04d}", f"name-{n % 1200}", priority=n % 3) for n in range(3000)]
        await store.enqueue(jobs, now=NOW)
        best = sorted(jobs, key=lambda job: (-job.priority, job.id))
        claimed: list[str] = []
        for number in range(4):
            some = await store.claim(f"t{number}", [Demand(750)], worker="w", lease=60.0, now=NOW)
            claimed += [job.id for job in some.jobs]
        assert claimed == [job.id for job in best]
        await store.close()

    asyncio.run(run())


def test_large_payloads_come_in_moderate_answers(server: ValkeyServer, prefix: str):
    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        payload = '"' + "x" * 1_000_000 + '"'
        await store.enqueue([NewJob(f"{n:02d}", "a", payload) for n in range(30)], now=NOW)
        claimed = await store.claim("t", [Demand(30)], worker="w", lease=60.0, now=NOW)
        assert [job.id for job in claimed.jobs] == [f"{n:02d}" for n in range(30)]
        assert all(job.payload_json == payload for job in claimed.jobs)
        assert len(await store.expired(30, now=NOW + timedelta(seconds=61))) == 30
        assert len(await store.find(EVERYTHING, limit=30)) == 30
        assert await store.find(EVERYTHING, limit=7, before="10") == (await store.find(EVERYTHING, limit=27))[20:]
        await store.delete(EVERYTHING)
        await store.close()

    asyncio.run(run())


def test_moments_beyond_what_a_double_holds_are_exact(server: ValkeyServer, prefix: str):
    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        first = datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
        odd = datetime(2300, 1, 1, 0, 0, 0, 123_457, tzinfo=UTC)
        await store.enqueue([NewJob(str(n), "a", run_at=moment) for n, moment in enumerate((last, first, odd))], now=NOW)
        assert [job.run_at for job in await store.get(["0", "1", "2"])] == [last, first, odd]
        assert (await store.stats()).next_run_at == first
        claimed = await store.claim("t", [Demand(5)], worker="w", lease=60.0, now=NOW)
        assert [job.id for job in claimed.jobs] == ["1"]
        assert claimed.next_in == pytest.approx((odd - NOW).total_seconds(), abs=1e-3)
        await store.close()

    asyncio.run(run())
