"""One store from many event loops and threads, and loops that go without a word: nothing leaks, nothing warns."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings

import psycopg
from tests.servers.postgres import shared_server

from treadle.core.filter import EVERYTHING
from treadle.core.job import NewJob
from treadle.stores.postgres import PostgresStore
from treadle.testing.factory import uuid7

PAUSE = threading.Event()  # for looking again soon at what happens elsewhere


def _connections(database: str) -> int:
    with psycopg.connect(shared_server().url) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where datname = %s and backend_type = 'client backend'",
            [database.rsplit("/", 1)[1]],
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_store_outlives_any_number_of_loops(database: str) -> None:
    store = PostgresStore(database, migrate=True)
    for number in range(6):
        asyncio.run(store.enqueue([NewJob(uuid7(number), "job")]))
    assert asyncio.run(store.count(EVERYTHING)) == 6
    gc.collect()
    assert _connections(database) == 0, "a loop that ended takes its connections with it"
    asyncio.run(store.close())


def test_a_loop_that_is_closed_without_shutdown_is_swept_at_the_next_use(database: str) -> None:
    store = PostgresStore(database, migrate=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(3):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(store.enqueue([NewJob(uuid7(number), "job")]))
            pending = asyncio.all_tasks(loop)
            for task in pending:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
        assert asyncio.run(store.count(EVERYTHING)) == 3
        assert _connections(database) == 0
        asyncio.run(store.close())
        gc.collect()


def test_a_store_that_nobody_closes_gives_its_connections_up(database: str) -> None:
    async def main() -> None:
        store = PostgresStore(database, migrate=True)
        await store.enqueue([NewJob(uuid7(1), "job")])
        await store.listen(lambda: None)
        del store
        gc.collect()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()
    assert _connections(database) == 0


def test_threads_use_it_at_once(database: str) -> None:
    store = PostgresStore(database, migrate=True)
    failures: list[BaseException] = []

    def enqueue(thread: int) -> None:
        async def main() -> None:
            await asyncio.gather(*(store.enqueue([NewJob(uuid7(thread * 100 + number), "job")]) for number in range(20)))

        try:
            asyncio.run(main())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=enqueue, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert asyncio.run(store.count(EVERYTHING)) == 120
    asyncio.run(store.close())


def test_the_pool_has_its_bound(database: str) -> None:
    async def main() -> None:
        store = PostgresStore(database, migrate=True, pool_size=2)
        await asyncio.gather(*(store.enqueue([NewJob(uuid7(number), "job")]) for number in range(50)))
        assert _connections(database) <= 2
        await store.close()
        assert _connections(database) == 0
        assert await store.count(EVERYTHING) == 50, "a later use opens it again"
        await store.close()
        await store.close()

    asyncio.run(main())


def test_a_cancelled_call_harms_no_other(database: str) -> None:
    async def main() -> None:
        store = PostgresStore(database, migrate=True, pool_size=1)
        await store.stats()
        for delay in (0.0, 0.0005, 0.001, 0.002, 0.005):
            task = asyncio.create_task(store.enqueue([NewJob(uuid7(round(delay * 10_000)), "job")]))
            await asyncio.to_thread(PAUSE.wait, delay)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert isinstance(await store.count(EVERYTHING), int)
        await store.close()

    asyncio.run(main())
