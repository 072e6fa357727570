"""Faults under load on real servers: a crash, cut connections, a flushed script cache, a lost answer, a failover (S7, S10)."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Self

import pytest
from tests.servers import valkey
from tests.stores.redis.audit import Audit
from tests.stores.redis.load import Load, insisted

from treadle.core.errors import StoreUnavailable
from treadle.core.filter import JobFilter
from treadle.core.job import NewJob
from treadle.core.store import Claim, Demand
from treadle.stores.redis import RedisStore


@pytest.mark.slow
def test_no_job_is_lost_when_the_server_is_killed():
    async def crash(load: Load) -> None:
        for share in (0.2, 0.4, 0.6):
            await load.until(lambda share=share: len(load.done) > share * len(load.ids))
            server.kill9()
            server.start()

    async def run() -> None:
        store = RedisStore(server.url)
        load = Load(store)
        await load.run(crash)
        await load.check("kill -9 three times, appendfsync always")
        await store.close()

    with valkey.serving(valkey.DURABLE) as server:
        asyncio.run(run())
        Audit(server, "treadle").check()


@pytest.mark.soak
def test_no_job_is_lost_over_a_hundred_kills():
    chance = random.Random(2026)

    async def crash(load: Load) -> None:
        for share in sorted(chance.random() * 0.95 for _ in range(100)):
            await load.until(lambda share=share: len(load.done) > share * len(load.ids))
            await asyncio.to_thread(server.kill9)
            await asyncio.to_thread(server.start)

    async def run() -> None:
        store = RedisStore(server.url)
        load = Load(store, 20_000)
        await load.run(crash)
        await load.check("kill -9 a hundred times, appendfsync always")
        await store.close()

    with valkey.serving(valkey.DURABLE) as server:
        asyncio.run(run())
        Audit(server, "treadle").check()


@pytest.mark.slow
def test_no_job_is_lost_when_all_connections_are_cut(server: valkey.ValkeyServer, prefix: str):
    async def cut(load: Load) -> None:
        for share in (0.2, 0.4, 0.6):
            await load.until(lambda share=share: len(load.done) > share * len(load.ids))
            server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        load = Load(store)
        await load.run(cut)
        await load.check("all connections cut three times")
        await store.close()

    asyncio.run(run())
    Audit(server, prefix).check()


def test_a_flushed_script_cache_is_not_felt(server: valkey.ValkeyServer, prefix: str):
    async def flush(load: Load) -> None:
        for share in (0.2, 0.5, 0.8):
            await load.until(lambda share=share: len(load.done) > share * len(load.ids))
            server.command("SCRIPT", "FLUSH")

    async def run() -> None:
        store = RedisStore(server.url, prefix=prefix)
        load = Load(store, 400)
        await load.run(flush)
        assert load.outages == 0
        await load.check("script cache flushed three times")
        keeper = store.lease_keeper()
        server.command("SCRIPT", "FLUSH")
        assert await asyncio.to_thread(keeper.renew, [Claim("x", "y")], 1.0) == set()
        keeper.close()
        await store.close()

    asyncio.run(run())


class Deaf:
    """A proxy that passes requests on and, once `deaf`, no answers: a network that fails one way."""

    def __init__(self, port: int) -> None:
        self.port, self.deaf = port, False
        self.tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self.port)
        pumps = [
            asyncio.create_task(self.pump(reader, to_server, answers=False)),
            asyncio.create_task(self.pump(from_server, writer, answers=True)),
        ]
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for end in (writer, to_server):
            end.close()

    async def pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, answers: bool) -> None:
        while data := await source.read(65536):
            if not (answers and self.deaf):
                sink.write(data)
                await sink.drain()


def test_a_call_whose_answer_is_lost_is_made_once(server: valkey.ValkeyServer, prefix: str):
    async def run() -> None:
        async with Deaf(server.port) as proxy:
            store = RedisStore(proxy.url, prefix=prefix, timeout=1.0)
            await store.enqueue([NewJob("1", "a"), NewJob("2", "a")])
            await store.claim("none", [Demand(1, ())], worker="w", lease=60.0)  # so that the server knows the script
            proxy.deaf = True
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                await store.claim("t", [Demand(1)], worker="w", lease=60.0)
            proxy.deaf = False
            [(claim, job)] = await store.held(["t"])
            assert (claim, job.attempts) == (Claim("1", "t"), 1), "the claim was carried out once, and can be found"
            await store.close()

    asyncio.run(run())


def test_a_silent_server_ends_in_an_error_and_is_used_again_when_it_answers():
    async def run() -> None:
        store = RedisStore(server.url, timeout=1.0, patience=1.0)
        await store.enqueue([NewJob("1", "a")])
        server.freeze()
        try:
            with pytest.raises(StoreUnavailable):
                await store.count(JobFilter())
        finally:
            server.thaw()
        assert await store.count(JobFilter()) == 1
        await store.close()

    with valkey.serving() as server:
        asyncio.run(run())


def test_a_server_that_starts_late_is_waited_for():
    async def run() -> None:
        store = RedisStore(server.url, patience=10.0)
        await store.enqueue([NewJob("1", "a")])
        await asyncio.to_thread(server.stop)
        call = asyncio.create_task(store.enqueue([NewJob("2", "a")]))
        await asyncio.to_thread(server.start)
        assert [one.created for one in await call] == [True]
        await store.close()

    with valkey.serving() as server:
        asyncio.run(run())


def test_no_server_is_an_error_in_words():
    async def run() -> None:
        store = RedisStore(f"redis://:hidden@127.0.0.1:{valkey.free_port()}", patience=0.1)
        with pytest.raises(StoreUnavailable) as failed:
            await store.enqueue([NewJob("1", "a")])
        assert "127.0.0.1" in str(failed.value)
        assert "hidden" not in str(failed.value)
        assert "\n" not in str(failed.value)
        keeper = store.lease_keeper()
        with pytest.raises(StoreUnavailable):
            keeper.renew([Claim("1", "t")], 1.0)
        keeper.close()
        await store.close()

    asyncio.run(run())


@pytest.mark.slow
def test_a_failover_is_followed():
    async def run() -> None:
        store = RedisStore(sentinels.url, timeout=2.0)
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        listener = await store.listen(lambda: loop.call_soon_threadsafe(woken.set))
        await store.enqueue([NewJob("before", "a")])
        await asyncio.to_thread(
            valkey.eventually, lambda: sentinels.replica.command("DBSIZE") == sentinels.primary.command("DBSIZE"), "replication"
        )
        sentinels.primary.kill9()
        async with asyncio.timeout(30):
            await insisted(lambda: store.enqueue([NewJob("after", "a")]))
        assert {job.id for job in await store.get(["before", "after"])} == {"before", "after"}
        async with asyncio.timeout(30):
            while not woken.is_set():  # the listener goes over too, however many enqueues that takes
                await store.claim("t", [Demand(10)], worker="w", lease=60.0)
                await store.enqueue([NewJob(f"wake-{loop.time()}", "a")])
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await woken.wait()
        await listener.close()
        await store.close()

    sentinels = valkey.ValkeySentinels()
    try:
        asyncio.run(run())
    finally:
        sentinels.close()
