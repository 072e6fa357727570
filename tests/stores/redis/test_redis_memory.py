"""A server without memory: a clear error, nothing half written, workers that can still empty it, and it goes on after (S7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers import valkey
from tests.stores.redis.audit import Audit

from treadle.core.errors import StoreError, StoreFull, StoreUnavailable
from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Key, NewJob, State
from treadle.core.outcome import Dead, Done, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.redis import RedisStore

BINARIES = [binary for binary in (valkey.bundled_binary(), valkey.system_binary()) if binary is not None]


@pytest.fixture(params=BINARIES, ids=lambda binary: binary.name)
def own(request: pytest.FixtureRequest) -> Iterator[valkey.ValkeyServer]:
    binary: Path = request.param
    with valkey.serving(binary=binary) as server:
        yield server


def test_a_full_server_refuses_whole_batches_and_can_still_be_emptied(own: valkey.ValkeyServer):
    async def run() -> None:
        store = RedisStore(own.url)
        await store.enqueue([NewJob(f"{n:03d}", "a", key=Key("dedupe", str(n))) for n in range(60)])
        claimed = await store.claim("t", [Demand(20)], worker="w", lease=60.0)
        await store.finish([Ending(Claim(job.id, "t"), Dead("E")) for job in claimed.jobs[:10]])
        own.command("CONFIG", "SET", "maxmemory", "1")
        before = await store.stats()

        refused = "out of memory, nothing was stored.*maxmemory"
        with pytest.raises(StoreFull, match=refused):
            await store.enqueue([NewJob(f"new-{n}", "b", key=Key("dedupe", f"new-{n}")) for n in range(50)])
        with pytest.raises(StoreFull, match=refused):
            await store.put_document("n", "k", "v")
        with pytest.raises(StoreFull, match=refused):
            await store.ensure([(Interval.of(60.0, NewJob("", "tick")), "tick-1")])
        assert await store.stats() == before
        Audit(own, "treadle").check()

        # What only moves jobs on, or removes them, goes on: else a full server would stay full.
        claims = [Claim(job.id, "t") for job in claimed.jobs[10:]]
        assert await store.renew(claims, 120.0) == set(claims)
        assert len((await store.claim("u", [Demand(5)], worker="w", lease=60.0)).jobs) == 5
        assert await store.finish([Ending(claims[0], Done()), Ending(claims[1], RetryAfter(0.0, "E"))]) == set(claims[:2])
        assert len((await store.redrive(EVERYTHING, RedrivePolicy.RESET)).revived) == 10
        assert await store.run_now(EVERYTHING) > 0
        assert await store.delete(JobFilter(states=frozenset({State.PENDING}))) > 0
        Audit(own, "treadle").check()

        own.command("CONFIG", "SET", "maxmemory", "0")
        assert [one.created for one in await store.enqueue([NewJob("new-1", "b")])] == [True]
        await store.close()

    asyncio.run(run())


def test_a_full_server_can_be_opened_by_a_new_store(own: valkey.ValkeyServer):
    async def run() -> None:
        own.command("CONFIG", "SET", "maxmemory", "1")
        store = RedisStore(own.url)
        assert await store.count(EVERYTHING) == 0
        await store.close()

    asyncio.run(run())


def test_a_replica_takes_no_writes_and_says_so(own: valkey.ValkeyServer):
    async def run() -> None:
        store = RedisStore(own.url)
        await store.enqueue([NewJob("1", "a")])
        own.command("REPLICAOF", "127.0.0.1", str(valkey.free_port()))
        with pytest.raises(StoreUnavailable, match="replica"):
            await store.enqueue([NewJob("2", "a")])
        own.command("REPLICAOF", "NO", "ONE")
        await store.enqueue([NewJob("2", "a")])
        await store.close()

    asyncio.run(run())


def test_a_wrong_password_is_no_outage():
    async def run() -> None:
        store = RedisStore(own.url.replace("redis://", "redis://:wrong@"))
        with pytest.raises(StoreError, match="refuses this client") as failed:
            await store.count(EVERYTHING)
        assert not isinstance(failed.value, StoreUnavailable)
        await store.close()
        store = RedisStore(own.url.replace("/0", "/99"))
        with pytest.raises(StoreError, match="refuses this client"):
            await store.count(EVERYTHING)
        await store.close()

    with valkey.serving() as own:
        own.command("CONFIG", "SET", "requirepass", "right")
        own.client.connection_pool.disconnect()
        asyncio.run(run())


@pytest.mark.parametrize(("policy", "warned"), [("allkeys-lru", True), ("noeviction", False), ("volatile-ttl", False)])
def test_a_policy_that_could_drop_jobs_is_warned_about_once(policy: str, warned: bool, caplog: pytest.LogCaptureFixture):
    async def use(store: RedisStore) -> None:
        await store.count(EVERYTHING)
        await store.close()

    with valkey.serving({"maxmemory-policy": policy}) as server, caplog.at_level(logging.INFO, "treadle"):
        store = RedisStore(server.url)
        for _ in range(2):
            asyncio.run(use(store))
    told = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(told) == warned
    assert all(f"maxmemory-policy {policy}" in text for text in told)
    assert sum("append-only" in one.getMessage() for one in caplog.records) == 1
