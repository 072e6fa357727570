"""A connection that goes silent, without an end or a reset: noticed by the store itself, in time (S6, S10)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.servers.postgres import shared_server
from tests.servers.proxy import Proxy, proxy

from treadle.core.errors import StoreUnavailable
from treadle.core.job import Key, NewJob
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.postgres import PostgresStore, keeper, wakeups
from treadle.testing.factory import uuid7

PAUSE = threading.Event()  # for looking again soon at what happens elsewhere


@contextmanager
def _behind_a_proxy() -> Iterator[tuple[Proxy, str, str]]:
    """A proxy, and the URL of a database through it and past it."""
    server = shared_server()
    database = server.fresh_database()
    try:
        with proxy(server.port) as between:
            yield between, server.url_of(database, between.port), server.url_of(database)
    finally:
        server.drop_database(database)


def test_a_silent_server_is_given_up_and_the_work_goes_on_when_it_speaks_again() -> None:
    async def main(between: Proxy, url: str) -> None:
        store = PostgresStore(url, migrate=True, connect_timeout=0.5, answer_timeout=0.5)
        await store.enqueue([NewJob(uuid7(number), "job") for number in range(10)])
        between.stall()
        started = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await store.claim("lost", [Demand(3)], worker="w", lease=60.0)
        with pytest.raises(StoreUnavailable):
            await store.stats()
        assert time.monotonic() - started < 6.0, "each call ends in a bounded time"
        between.cut()
        between.resume()
        # The claim may have reached the server or not: its token tells.
        held = await store.held(["lost"])
        again = await store.claim("again", [Demand(10)], worker="w", lease=60.0)
        assert len(held) + len(again.jobs) == 10
        claims = {claim for claim, _ in held} | {Claim(job.id, "again") for job in again.jobs}
        assert await store.finish([Ending(claim, Done()) for claim in claims]) == claims
        await store.close()

    with _behind_a_proxy() as (between, url, _):
        asyncio.run(main(between, url))


def test_a_finish_whose_answer_was_lost_in_silence_is_known_to_hold() -> None:
    async def main(between: Proxy, url: str) -> None:
        store = PostgresStore(url, migrate=True, connect_timeout=2, answer_timeout=0.5)
        await store.enqueue([NewJob(uuid7(1), "job")])
        claimed = await store.claim("t", [Demand(1)], worker="w", lease=60.0)
        claim = Claim(claimed.jobs[0].id, "t")
        between.stall()
        task = asyncio.create_task(store.finish([Ending(claim, Done())]))
        await asyncio.to_thread(PAUSE.wait, 0.1)  # the statement is under way in the silence
        between.cut()
        between.resume()
        assert await task == {claim}, "the finish is repeated on a new connection"
        assert await store.finish([Ending(claim, Done())]) == set(), "a claim holds once"
        await store.close()

    with _behind_a_proxy() as (between, url, _):
        asyncio.run(main(between, url))


def test_a_long_wait_is_not_taken_for_silence() -> None:
    """An enqueue that waits for a key in an open transaction may take longer than an answer, since the server is there."""

    async def main(url: str) -> None:
        import psycopg

        store = PostgresStore(url, migrate=True, answer_timeout=0.2)
        await store.stats()
        key = Key("dedupe", "k")
        async with await psycopg.AsyncConnection.connect(url) as own:
            await store.enqueue_on(own, [NewJob(uuid7(1), "job", key=key)])
            task = asyncio.create_task(store.enqueue([NewJob(uuid7(2), "job", key=key)]))
            done, _ = await asyncio.wait([task], timeout=1.5)
            assert not done, "the enqueue waits for the transaction that holds its key"
            await own.rollback()
        [answer] = await task
        assert answer.created
        await store.close()

    with _behind_a_proxy() as (_, _, url):
        asyncio.run(main(url))


def test_a_silent_wait_for_a_key_is_given_up() -> None:
    async def main(between: Proxy, url: str) -> None:
        store = PostgresStore(url, migrate=True, connect_timeout=0.5, answer_timeout=0.3)
        await store.stats()
        between.stall()
        with pytest.raises(StoreUnavailable):
            await store.enqueue([NewJob(uuid7(1), "job")])
        between.cut()
        between.resume()
        [answer] = await store.enqueue([NewJob(uuid7(1), "job")])
        assert answer.created
        await store.close()

    with _behind_a_proxy() as (between, url, _):
        asyncio.run(main(between, url))


def test_a_listener_that_died_in_silence_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "HEARTBEAT", 0.3)

    async def main(between: Proxy, url: str, past: str) -> None:
        listening, telling = PostgresStore(url, migrate=True, connect_timeout=1), PostgresStore(past, migrate=True)
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        listener = await listening.listen(lambda: loop.call_soon_threadsafe(woken.set))
        await telling.stats()
        woken.clear()
        await telling.enqueue([NewJob(uuid7(1), "job")])
        async with asyncio.timeout(5):
            await woken.wait()
        accepted = between.accepted
        between.stall()
        async with asyncio.timeout(10):
            while between.accepted == accepted:  # the listener gave the silent connection up, and tries a new one
                await asyncio.to_thread(PAUSE.wait, 0.01)
        woken.clear()
        between.cut()
        between.resume()
        async with asyncio.timeout(10):
            await woken.wait()  # on a new connection all are woken, for what was missed
        woken.clear()
        await telling.enqueue([NewJob(uuid7(2), "job")])
        async with asyncio.timeout(5):
            await woken.wait()
        await listener.close()
        await listening.close()
        await telling.close()

    with _behind_a_proxy() as (between, url, past):
        asyncio.run(main(between, url, past))


def test_a_lease_keeper_gives_a_silent_connection_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "ANSWER", 0.3)

    async def main(between: Proxy, url: str, past: str) -> None:
        store = PostgresStore(past, migrate=True)
        await store.enqueue([NewJob(uuid7(1), "job")])
        claimed = await store.claim("t", [Demand(1)], worker="w", lease=60.0)
        claim = Claim(claimed.jobs[0].id, "t")
        through = PostgresStore(url)
        keeping = through.lease_keeper()
        assert await asyncio.to_thread(keeping.renew, [claim], 60.0) == {claim}
        between.stall()
        started = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await asyncio.to_thread(keeping.renew, [claim], 60.0)
        assert time.monotonic() - started < 8.0
        between.cut()
        between.resume()
        assert await asyncio.to_thread(keeping.renew, [claim], 60.0) == {claim}
        keeping.close()
        await store.close()

    with _behind_a_proxy() as (between, url, past):
        asyncio.run(main(between, url, past))
