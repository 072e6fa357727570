"""A connection that goes silent, without an end or a reset: noticed by the store itself, in time (S6, S10)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from tests.servers.postgres import shared_server
from tests.servers.proxy import Proxy, proxy

from treadle.core.errors import StoreUnavailable
from treadle.core.job import Key, NewJob
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.postgres import PostgresStore, keeper, wakeups
from treadle.stores.postgres.session import Session
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


KEYED = [NewJob(uuid7(number), "job", key=Key("dedupe", str(number))) for number in (1, 2)]
IN_TRANSACTIONS: dict[str, Callable[[PostgresStore], Awaitable[object]]] = {
    "enqueue of keyed jobs": lambda store: store.enqueue(KEYED),
    "claim for several demands": lambda store: store.claim("t", [Demand(1, ("a",)), Demand(1, ("b",))], worker="w", lease=60.0),
    "mark of a move": lambda store: store.put_mark(None, expect=None),
}


@pytest.mark.parametrize("call", IN_TRANSACTIONS.values(), ids=list(IN_TRANSACTIONS))
def test_a_transaction_that_cannot_begin_is_given_up(call: Callable[[PostgresStore], Awaitable[object]]) -> None:
    async def main(between: Proxy, url: str) -> None:
        store = PostgresStore(url, migrate=True, listen=False, notify=False, connect_timeout=0.5, answer_timeout=0.3)
        await store.stats()
        between.stall()
        async with asyncio.timeout(8):
            with pytest.raises(StoreUnavailable):
                await call(store)
        between.cut()
        between.resume()
        await call(store)
        await store.close()

    with _behind_a_proxy() as (between, url, _):
        asyncio.run(main(between, url))


@pytest.mark.parametrize("ends_well", [True, False])
def test_a_transaction_that_cannot_end_is_given_up(ends_well: bool) -> None:
    """The server waits in it for a word that is lost: it is idle, and not at work on anything."""

    async def main(between: Proxy, url: str, past: str) -> None:
        store = PostgresStore(url, migrate=True, listen=False, notify=False, connect_timeout=0.5, answer_timeout=0.3)
        others = PostgresStore(past, migrate=True, listen=False, notify=False)
        await others.stats()
        [(pool, _)] = others._runner._pools.values()

        async def work(session: Session, _: bool) -> None:
            session._watch = pool.at_work  # the new connection that asks is a good one
            async with session.transaction():
                await session.fetch("version")
                between.stall()
                if not ends_well:
                    raise ZeroDivisionError

        async with asyncio.timeout(10):
            with pytest.raises(StoreUnavailable if ends_well else (StoreUnavailable, ZeroDivisionError)):
                await store._runner.run(work, again=False)
        between.cut()
        between.resume()
        await store.stats()
        await store.close()
        await others.close()

    with _behind_a_proxy() as (between, url, past):
        asyncio.run(main(between, url, past))


def test_a_migration_waits_for_its_turn_and_not_for_a_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = psycopg.connect

    def silently(*arguments: Any, **options: Any) -> psycopg.Connection[Any]:
        made = connect(*arguments, **options)
        between.stall()
        return made

    async def main(url: str, past: str) -> None:
        patient = PostgresStore(past, answer_timeout=0.2)
        with psycopg.connect(past) as first:
            first.execute("select pg_advisory_xact_lock(hashtextextended('treadle migrate treadle', 0))")
            task = asyncio.create_task(patient.migrate())
            done, _ = await asyncio.wait([task], timeout=1.0)
            assert not done, "it waits for the one that is at it"
        assert "Applied" in await task
        store = PostgresStore(url, connect_timeout=0.5, answer_timeout=0.3)
        with monkeypatch.context() as patched:
            patched.setattr(psycopg, "connect", silently)
            async with asyncio.timeout(10):
                with pytest.raises(StoreUnavailable):
                    await store.migrate()
        await store.close()
        await patient.close()

    with _behind_a_proxy() as (between, url, past):
        asyncio.run(main(url, past))


def test_the_last_subscriber_of_a_listener_that_connects_in_silence_stops_no_loop() -> None:
    async def main(between: Proxy, url: str) -> None:
        store = PostgresStore(url, migrate=True, connect_timeout=2)
        listener = await store.listen(lambda: None)
        accepted = between.accepted
        between.stall()
        between.cut()
        async with asyncio.timeout(10):
            while between.accepted == accepted:
                await asyncio.to_thread(PAUSE.wait, 0.005)
        closing = asyncio.create_task(listener.close())
        turns = 0
        while not closing.done():
            started = time.monotonic()
            await asyncio.wait([closing], timeout=0.01)
            assert time.monotonic() - started < 1.0, "the loop goes on while the listener ends"
            turns += 1
        assert turns > 10, "the listener was connecting when it was closed"
        between.resume()
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


def test_a_lease_keeper_gives_a_connection_up_that_falls_silent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its first renewal, when it settles how statements are run."""
    monkeypatch.setattr(keeper, "ANSWER", 0.3)

    def main(between: Proxy, url: str) -> None:
        connect = psycopg.connect

        def silently(*arguments: Any, **options: Any) -> psycopg.Connection[Any]:
            made = connect(*arguments, **options)
            between.stall()
            return made

        keeping = PostgresStore(url).lease_keeper()
        with monkeypatch.context() as patched:
            patched.setattr(psycopg, "connect", silently)
            started = time.monotonic()
            with pytest.raises(StoreUnavailable):
                keeping.renew([Claim("id", "t")], 60.0)
            assert time.monotonic() - started < 5.0
        keeping.close()

    with _behind_a_proxy() as (between, url, _):
        thread = threading.Thread(target=main, args=(between, url), daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
