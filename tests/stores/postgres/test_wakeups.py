"""Wake-ups by NOTIFY: quick, few under load, only for what was committed, and never needed (E26, S6)."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import threading
import time

import psycopg
import pytest

from treadle.core.errors import StoreUnavailable
from treadle.core.job import NewJob
from treadle.core.outcome import RetryAfter
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.postgres import PostgresStore
from treadle.testing.factory import uuid7

PAUSE = threading.Event()  # for looking again soon at what happens elsewhere


class Sleeper:
    """Listens on a store and counts."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.woken = asyncio.Event()
        self.number = 0

    def wake(self) -> None:
        self.number += 1
        self.loop.call_soon_threadsafe(self.woken.set)

    async def wait(self) -> float:
        started = time.perf_counter()
        async with asyncio.timeout(5):
            await self.woken.wait()
        self.woken.clear()
        return time.perf_counter() - started


def test_another_process_is_woken_soon(url: str) -> None:
    async def main() -> None:
        here, there = PostgresStore(url), PostgresStore(url)
        sleeper = Sleeper()
        listener = await here.listen(sleeper.wake)
        await sleeper.wait()  # the first connection wakes, for what was there before
        times = []
        for number in range(20):
            await there.enqueue([NewJob(uuid7(number), "job")])
            times.append(await sleeper.wait())
            await asyncio.to_thread(PAUSE.wait, 0.015)
        print(f"from the enqueue's return to the wake-up: median {statistics.median(times) * 1000:.2f} ms")
        assert statistics.median(times) < 0.1
        await there.claim("t", [Demand(1)], worker="w", lease=60.0)
        sleeper.woken.clear()
        await there.finish([Ending(Claim(uuid7(0), "t"), RetryAfter(0.0, "E: no"))])
        await sleeper.wait()
        await listener.close()
        await here.close()
        await there.close()

    asyncio.run(main())


def test_many_enqueues_send_few_notifications(url: str) -> None:
    async def main() -> None:
        here, there = PostgresStore(url), PostgresStore(url)
        sleeper = Sleeper()
        listener = await here.listen(sleeper.wake)
        await sleeper.wait()
        before, started = sleeper.number, time.monotonic()
        for number in range(200):
            await there.enqueue([NewJob(uuid7(number), "job")])
        took = time.monotonic() - started
        await sleeper.wait()
        heard = sleeper.number - before
        assert 1 <= heard <= took / 0.01 + 2, f"{heard} notifications for 200 enqueues in {took:.2f} s"
        await listener.close()
        await here.close()
        await there.close()

    asyncio.run(main())


def test_the_own_process_is_woken_at_once_and_once(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url)
        sleeper = Sleeper()
        listener = await store.listen(sleeper.wake)
        await sleeper.wait()
        before = sleeper.number
        await store.enqueue([NewJob(uuid7(1), "job")])
        assert sleeper.number == before + 1, "woken before the enqueue returned, without the server"
        await store.close()
        assert sleeper.number == before + 1, "the store's own NOTIFY is no second wake-up"
        await listener.close()

    asyncio.run(main())


def test_a_short_script_still_tells_the_others(url: str) -> None:
    async def main() -> None:
        here = PostgresStore(url)
        sleeper = Sleeper()
        listener = await here.listen(sleeper.wake)
        await sleeper.wait()
        there = PostgresStore(url)
        await asyncio.to_thread(asyncio.run, there.enqueue([NewJob(uuid7(1), "job")]))  # the loop ends with the call
        await sleeper.wait()
        await listener.close()
        await here.close()
        await there.close()

    asyncio.run(main())


def test_without_listening_nothing_wakes_but_what_is_done_here(url: str) -> None:
    async def main() -> None:
        here, there = PostgresStore(url, listen=False), PostgresStore(url)
        sleeper = Sleeper()
        listener = await here.listen(sleeper.wake)
        await there.enqueue([NewJob(uuid7(1), "job")])
        await there.close()
        assert sleeper.number == 0
        claimed = await here.claim("t", [Demand(1)], worker="w", lease=60.0)
        assert len(claimed.jobs) == 1, "polling finds what there is"
        await here.enqueue([NewJob(uuid7(2), "job")])
        assert sleeper.number == 1
        await listener.close()
        await here.close()

    asyncio.run(main())


def test_listeners_share_one_connection(database: str) -> None:
    async def main() -> None:
        store = PostgresStore(database, migrate=True)
        sleepers = [Sleeper() for _ in range(5)]
        listeners = [await store.listen(one.wake) for one in sleepers]
        with psycopg.connect(database) as connection:
            row = connection.execute("select count(*) from pg_stat_activity where query ilike 'listen%'").fetchone()
        assert row == (1,)
        await sleepers[0].wait()
        other = PostgresStore(database, migrate=True)
        await other.enqueue([NewJob(uuid7(1), "job")])
        for one in sleepers:
            await one.wait()
        await other.close()
        for listener in listeners:
            await listener.close()
            await listener.close()
        with psycopg.connect(database) as connection:
            row = connection.execute("select count(*) from pg_stat_activity where query ilike 'listen%'").fetchone()
        assert row == (0,)
        await store.close()

    asyncio.run(main())


def test_a_server_that_is_away_does_not_keep_a_listener_from_starting() -> None:
    async def main() -> None:
        store = PostgresStore("postgresql://nobody@127.0.0.1:1/nothing", connect_timeout=0.3)
        listener = await store.listen(lambda: None)
        await listener.close()
        await store.close()

    asyncio.run(main())


def test_a_listener_of_a_process_with_many_open_files_connects_again(database: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]

    async def main() -> None:
        here, there = PostgresStore(database, migrate=True), PostgresStore(database)
        sleeper = Sleeper()
        listener = await here.listen(sleeper.wake)
        await sleeper.wait()
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%'")
        await sleeper.wait()  # on a new connection all are woken
        await here.stats()
        await there.enqueue([NewJob(uuid7(1), "job")])
        await sleeper.wait()
        await listener.close()
        await here.close()
        await there.close()

    try:
        asyncio.run(main())
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_listener_tries_again_whatever_went_wrong(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, tries = psycopg.connect, []

    def failing(*arguments: object, **options: object) -> object:
        tries.append(arguments)
        if len(tries) == 1:
            raise UnicodeError("label empty or too long")
        return connect(*arguments, **options)  # type: ignore[arg-type]  # as they came

    async def main() -> None:
        store = PostgresStore(database, migrate=True)
        await store.stats()
        monkeypatch.setattr(psycopg, "connect", failing)
        sleeper = Sleeper()
        listener = await store.listen(sleeper.wake)
        await sleeper.wait()
        monkeypatch.undo()
        await listener.close()
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".example"])
def test_a_host_that_is_none_is_a_clear_error(host: str) -> None:
    async def main() -> None:
        store = PostgresStore(f"postgresql://u@{host}/db")
        keeper = store.lease_keeper()
        for call in (store.stats, store.migrate, lambda: asyncio.to_thread(keeper.renew, [Claim("id", "t")], 5.0)):
            with pytest.raises(StoreUnavailable, match="check the host in the URL"):
                await call()
        listener = await store.listen(lambda: None)
        await listener.close()
        await store.close()

    asyncio.run(main())
