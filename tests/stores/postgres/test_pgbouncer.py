"""Behind a pooler that works by transaction: without prepared statements, and with LISTEN off or going past it (S6)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from tests.servers.pgbouncer import pgbouncer, program
from tests.servers.postgres import shared_server

from treadle.core.job import Key, NewJob
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.postgres import PostgresStore
from treadle.testing.factory import uuid7


@pytest.fixture
def pooled(database: str) -> Iterator[str]:
    if program() is None:
        pytest.skip("there is no pgbouncer here, nor packages of this system to take it from")
    server = shared_server()
    with pgbouncer(server) as port:
        yield server.url_of(database.rsplit("/", 1)[1], port) + "?prepared_statements=off&listen=off"


def test_several_stores_work_through_four_connections(pooled: str, database: str) -> None:
    async def main() -> None:
        stores = [PostgresStore(pooled, migrate=True) for _ in range(3)]
        outcomes = (Done(), Done("note"), RetryAfter(0.0, "E: no"), Released(), Dead("E: no"))
        keyed = [NewJob(uuid7(number), "job", key=Key("dedupe", f"k{number % 50}")) for number in range(1000, 1100)]
        made = await asyncio.gather(*(store.enqueue(keyed[at::3]) for at, store in enumerate(stores)))
        assert sum(answer.created for one in made for answer in one) == 50
        await asyncio.gather(*(store.enqueue([NewJob(uuid7(number), "job")]) for number, store in enumerate(stores * 50)))

        async def work(store: PostgresStore, worker: str) -> int:
            ended = 0
            for number in range(2000):
                token = f"{worker}-{number}"
                claimed = await store.claim(token, [Demand(7, ("default",), {"job": 5})], worker=worker, lease=60.0)
                if not claimed.jobs:
                    return ended
                endings = [
                    Ending(Claim(job.id, token), outcomes[(at + number) % 5] if job.attempts < 3 else Done())
                    for at, job in enumerate(claimed.jobs)
                ]
                ended += len(await store.finish(endings))
            raise AssertionError("the jobs do not end")

        await asyncio.gather(*(work(store, f"w{number % 3}-{number}") for number, store in enumerate(stores * 3)))
        stats = await stores[0].stats()
        assert (stats.pending, stats.running) == (0, 0)
        assert stats.done + stats.dead == 200
        for store in stores:
            await store.close()

    asyncio.run(main())


def test_moments_keys_and_leases_hold_behind_it(pooled: str) -> None:
    async def main() -> None:
        store = PostgresStore(pooled, migrate=True)
        [answer] = await store.enqueue([NewJob(uuid7(1), "job", delay=0.0)])
        assert (await store.get([answer.id]))[0] == answer.job
        claimed = await store.claim("t", [Demand(1)], worker="w", lease=60.0)
        claim = Claim(answer.id, "t")
        keeper = store.lease_keeper()
        for _ in range(3):
            assert await asyncio.to_thread(keeper.renew, [claim], 120.0) == {claim}
        [(_, held)] = await store.held(["t"])
        assert held.lease_until is not None
        assert claimed.jobs[0].lease_until is not None
        assert held.lease_until > claimed.jobs[0].lease_until
        keeper.close()
        async with await psycopg.AsyncConnection.connect(pooled.partition("?")[0], prepare_threshold=None) as connection:
            [other] = await store.enqueue_on(connection, [NewJob(uuid7(2), "job")])
        assert (await store.get([other.id]))[0] == other.job
        await store.close()

    asyncio.run(main())


def test_listen_goes_past_it_by_a_url_of_its_own(pooled: str, database: str) -> None:
    async def main() -> None:
        here = PostgresStore(pooled, migrate=True, listen=True, direct_url=database)
        there = PostgresStore(pooled, migrate=True)
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        listener = await here.listen(lambda: loop.call_soon_threadsafe(woken.set))
        await asyncio.wait_for(woken.wait(), 5)
        woken.clear()
        await there.enqueue([NewJob(uuid7(1), "job")])
        await asyncio.wait_for(woken.wait(), 5)
        await listener.close()
        await here.close()
        await there.close()

    asyncio.run(main())
