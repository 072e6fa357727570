"""Wake-ups: told of news and of nothing else, kept up through cut and silent connections (E26)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.servers import valkey

from treadle.core.job import NewJob
from treadle.core.outcome import Released, RetryAfter
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.redis import RedisStore
from treadle.stores.redis.url import address
from treadle.stores.redis.wakeups import Subscription

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Bell:
    """Counts how often it was rung, from whatever thread."""

    def __init__(self) -> None:
        self.rings = 0
        self.changed = threading.Condition()

    def __call__(self) -> None:
        with self.changed:
            self.rings += 1
            self.changed.notify_all()

    async def rung(self, more_than: int) -> int:
        def wait() -> int:
            with self.changed:
                assert self.changed.wait_for(lambda: self.rings > more_than, 10), "not woken"
                return self.rings

        return await asyncio.to_thread(wait)


def published(server: valkey.ValkeyServer) -> int:
    return server.client.info("commandstats").get("cmdstat_publish", {}).get("calls", 0)


def test_only_news_is_published():
    async def told(move: Callable[[], object]) -> int:
        before = published(server)
        await move()
        return published(server) - before

    async def run() -> None:
        store = RedisStore(server.url)

        def enqueue(*jobs: NewJob):
            return lambda: store.enqueue(jobs, now=NOW)

        assert await told(enqueue(NewJob("1", "a", delay=60.0))) == 1, "the first that waits: whoever sleeps must know how long"
        assert await told(enqueue(NewJob("2", "a", delay=90.0))) == 0, "a later one changes nothing"
        assert await told(enqueue(NewJob("3", "a", delay=30.0))) == 1, "an earlier one does"
        assert await told(enqueue(NewJob("4", "a"))) == 1, "a due one"
        assert await told(enqueue(NewJob("5", "a"))) == 0, "one behind it, of which the same workers hear"
        assert await told(enqueue(*(NewJob(f"b{n}", f"name-{n}") for n in range(100)))) == 1, "a batch rings once"
        claimed = await store.claim("t", [Demand(200)], worker="w", lease=60.0, now=NOW)
        claims = [Claim(job.id, "t") for job in claimed.jobs]
        assert len(claims) == 102
        assert await told(lambda: store.finish([Ending(claims[0], RetryAfter(0.0, "E"))], now=NOW)) == 1
        assert await told(lambda: store.finish([Ending(claims[-1], Released())], now=NOW)) == 1
        assert await told(lambda: store.claim("u", [Demand(1)], worker="w", lease=60.0, now=NOW)) == 0
        await store.close()

    with valkey.serving() as server:
        asyncio.run(run())


def test_a_cut_subscription_comes_back_and_tells_what_it_may_have_missed():
    async def run() -> None:
        store, bell = RedisStore(server.url), Bell()
        listener = await store.listen(bell)
        rings = await bell.rung(0)
        server.command("CLIENT", "KILL", "TYPE", "pubsub")
        rings = await bell.rung(rings)
        await store.enqueue([NewJob("1", "a")])
        await bell.rung(rings)
        server.kill9()
        server.start()
        rings = await bell.rung(bell.rings)
        await store.enqueue([NewJob("2", "b")])
        await bell.rung(rings)
        await listener.close()
        await listener.close()
        await store.close()

    with valkey.serving() as server:
        asyncio.run(run())


def test_a_silent_connection_is_noticed_and_given_up():
    async def run() -> None:
        bell = Bell()
        subscription = Subscription(address(server.url, timeout=0.5), "{treadle}:wake", bell, silence=0.1)
        await subscription.begun()
        rings = await bell.rung(0)
        server.freeze()
        try:
            await asyncio.to_thread(valkey.eventually, lambda: subscription.reconnections > 0, "giving a silent server up")
        finally:
            server.thaw()
        await bell.rung(rings)
        await subscription.close()

    with valkey.serving() as server:
        asyncio.run(run())


def test_a_listener_may_begin_before_the_server():
    async def run() -> None:
        store, bell = RedisStore(server.url), Bell()
        listener = await store.listen(bell)
        assert bell.rings == 0
        await asyncio.to_thread(server.start)
        await bell.rung(0)
        await listener.close()
        await store.close()

    with valkey.serving() as server:
        server.stop()
        asyncio.run(run())


def test_a_bell_that_breaks_ends_no_subscription():
    async def run() -> None:
        store, rung = RedisStore(server.url), asyncio.Event()

        def broken() -> None:
            rung.set()
            raise RuntimeError("its loop has ended")

        listener = await store.listen(broken)
        async with asyncio.timeout(10):
            for number in range(2):
                await rung.wait()
                rung.clear()
                await store.enqueue([NewJob(str(number), f"n{number}")], now=NOW - timedelta(days=1))
            await rung.wait()
        await listener.close()
        await store.close()

    with valkey.serving() as server:
        asyncio.run(run())
