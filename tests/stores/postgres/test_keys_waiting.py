"""A key in an open transaction: only those with the same key wait for it (E10, docs/how-to/transactions.md)."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from treadle import Tasks
from treadle.core.job import Key, NewJob
from treadle.stores import open_store
from treadle.testing.factory import uuid7

pytestmark = pytest.mark.timeout(120)


def test_whoever_has_another_key_or_none_goes_on_and_so_does_the_worker(database: str) -> None:
    held = [f"held-{number}" for number in range(12)]  # more than there are connections

    async def main() -> None:
        async with Tasks(database, migrate=True) as tasks:
            ran: list[object] = []

            @tasks.handler("job")
            async def job(payload: object) -> None:
                ran.append(payload)

            await tasks.stats()
            async with await psycopg.AsyncConnection.connect(database) as connection:
                async with connection.transaction():
                    for key in held:
                        await tasks.enqueue("job", key, idempotency_key=key, connection=connection)
                    keys = [*held, *(f"k{number}" for number in range(200))]
                    calls = {key: asyncio.create_task(tasks.enqueue("job", key, idempotency_key=key)) for key in sorted(keys)}
                    free = {key: call for key, call in calls.items() if key not in held}
                    assert all(answer.created for answer in await asyncio.wait_for(asyncio.gather(*free.values()), 60))
                    assert (await asyncio.wait_for(tasks.enqueue("job", "late", dedupe_key="late"), 60)).created
                    assert (await asyncio.wait_for(tasks.enqueue("job", "without"), 60)).created
                    await asyncio.wait_for(tasks.drain(), 60)
                    assert len(ran) == 202
                    assert not any(calls[key].done() for key in held)
            answers = [await asyncio.wait_for(calls[key], 60) for key in held]
            assert not any(answer.created for answer in answers)
            assert [answer.job.payload for answer in answers] == held

    asyncio.run(main())


def test_a_caller_may_enqueue_with_another_key_within_its_transaction_but_not_in_it(database: str) -> None:
    """The two keys come at the same moment: in one write they would wait for each other, and Postgres would see nothing."""

    async def main() -> None:
        async with Tasks(database, migrate=True) as tasks:
            await tasks.stats()

            async with await psycopg.AsyncConnection.connect(database) as connection:
                async with connection.transaction():
                    await tasks.enqueue("job", idempotency_key="held", connection=connection)
                    keys = ["a", "b", "c", "d", "held", "e", "f", "g"]
                    others = [asyncio.create_task(tasks.enqueue("job", idempotency_key=key)) for key in keys]
                    audit = asyncio.create_task(tasks.enqueue("audit", dedupe_key="held"))
                    assert (await asyncio.wait_for(audit, 60)).created
            answers = await asyncio.wait_for(asyncio.gather(*others), 60)
            assert [key for key, answer in zip(keys, answers, strict=True) if not answer.created] == ["held"]

    asyncio.run(main())


def test_what_is_not_to_wait_stores_nothing_where_it_would_have_to(database: str) -> None:
    async def main() -> None:
        store = open_store(database, migrate=True)
        jobs = [NewJob(uuid7(number), "job", key=Key("dedupe", f"k{number}")) for number in range(3)]
        await store.stats()
        async with await psycopg.AsyncConnection.connect(database) as connection:
            async with connection.transaction():
                await store.enqueue_on(connection, [NewJob(uuid7(9), "job", key=Key("dedupe", "k1"))])
                assert await store.enqueue_unless_held(jobs) is None
                assert (await store.stats()).pending == 0
        answers = await store.enqueue_unless_held(jobs)
        assert [answer.created for answer in answers] == [True, False, True]
        assert [answer.created for answer in await store.enqueue_unless_held(jobs)] == [False] * 3
        await store.close()

    asyncio.run(main())
