"""A job of which other hands have taken a part is in nobody's way (S7)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.servers import valkey

from treadle.core.errors import StoreError
from treadle.core.job import Key, NewJob
from treadle.core.store import Claim, Demand
from treadle.stores.redis import RedisStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WITHOUT = "3"


def lose(server: valkey.ValkeyServer, prefix: str) -> None:
    assert server.command("HDEL", f"{{{prefix}}}:payload", WITHOUT) == 1


async def filled(server: valkey.ValkeyServer, prefix: str) -> RedisStore:
    store = RedisStore(server.url, prefix=prefix)
    await store.enqueue([NewJob(str(n), "a", f'"{n}"', key=Key("dedupe", f"k{n}")) for n in range(6)], now=NOW)
    return store


async def is_dead(server: valkey.ValkeyServer, prefix: str, store: RedisStore) -> None:
    """With what became of it for people to read, once its payload is put back."""
    stats = await store.stats()
    assert (stats.running, stats.dead) == (5, 1)
    with pytest.raises(StoreError, match=f"Redis has lost a part of job {WITHOUT}"):
        await store.get([WITHOUT])
    server.command("HSET", f"{{{prefix}}}:payload", WITHOUT, "null")
    [job] = await store.get([WITHOUT])
    assert job.state == "dead"
    assert job.last_error is not None and job.last_error.startswith(
        "Redis has lost the payload of this job: was its data edited"
    )
    assert len(job.failures) == 1
    assert (await store.enqueue([NewJob("anew", "a", key=Key("dedupe", f"k{WITHOUT}"))]))[0].created, "its key is free"


def others(ids: list[str]) -> bool:
    return ids == [str(n) for n in range(6) if str(n) != WITHOUT]


def test_a_claim_takes_the_others(server: valkey.ValkeyServer, prefix: str) -> None:
    async def run() -> None:
        store = await filled(server, prefix)
        lose(server, prefix)
        claimed = await store.claim("t", [Demand(10)], worker="w", lease=60.0, now=NOW)
        assert others([job.id for job in claimed.jobs])
        await is_dead(server, prefix, store)
        await store.close()

    asyncio.run(run())


def test_a_claim_whose_answer_was_lost_is_repeated_with_the_others(server: valkey.ValkeyServer, prefix: str) -> None:
    async def run() -> None:
        store = await filled(server, prefix)
        await store.claim("t", [Demand(10)], worker="w", lease=60.0, now=NOW)
        lose(server, prefix)
        held = await store.held(["t"])
        assert all(claim == Claim(job.id, "t") for claim, job in held)
        assert others(sorted(job.id for _, job in held))
        await is_dead(server, prefix, store)
        await store.close()

    asyncio.run(run())


def test_the_others_are_taken_back_when_their_leases_are_over(server: valkey.ValkeyServer, prefix: str) -> None:
    async def run() -> None:
        store = await filled(server, prefix)
        await store.claim("t", [Demand(10)], worker="w", lease=60.0, now=NOW)
        lose(server, prefix)
        expired = await store.expired(10, now=NOW + timedelta(seconds=61))
        assert others(sorted(one.job.id for one in expired))
        assert {one.claim.token for one in expired} == {"t"}
        await is_dead(server, prefix, store)
        await store.close()

    asyncio.run(run())


def test_the_name_of_a_worker_divides_no_record(server: valkey.ValkeyServer, prefix: str) -> None:
    async def run() -> None:
        store = await filled(server, prefix)
        claimed = await store.claim("t", [Demand(1)], worker="w\0x", lease=60.0, now=NOW)
        assert [(job.id, job.worker, job.queue) for job in claimed.jobs] == [("0", "wx", "default")]
        await store.close()

    asyncio.run(run())
