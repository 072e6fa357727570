"""A cluster of which one node hangs: who has nothing to do with it does not notice (S7)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.servers import valkey

from treadle.core.job import NewJob
from treadle.stores.redis import RedisStore
from treadle.stores.redis.home import Home
from treadle.stores.redis.script import script
from treadle.stores.redis.url import address
from treadle.stores.redis.wakeups import Subscription

TAG = "{treadle}"
TIMEOUT = 2.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[valkey.ValkeyCluster]:
    cluster = valkey.ValkeyCluster()
    for node in cluster.nodes:
        # A node that hangs takes its slots away, and the others go on with theirs.
        node.command("CONFIG", "SET", "cluster-require-full-coverage", "no")
    yield cluster
    cluster.close()


def place_of_owner(cluster: valkey.ValkeyCluster) -> int:
    return int(cluster.nodes[0].command("CLUSTER", "KEYSLOT", TAG)) * 3 // valkey.SLOTS


def url(node: valkey.ValkeyServer) -> str:
    return f"redis://127.0.0.1:{node.port}?cluster=true&timeout={TIMEOUT}"


@pytest.mark.slow
@pytest.mark.parametrize("beyond", [1, 2], ids=["one", "the other"])
def test_no_new_client_asks_a_node_that_it_does_not_need(cluster: valkey.ValkeyCluster, beyond: int) -> None:
    owner = cluster.nodes[place_of_owner(cluster)]
    hanging = cluster.nodes[(place_of_owner(cluster) + beyond) % 3]

    async def use(number: int) -> None:
        store, woken, loop = RedisStore(url(owner)), asyncio.Event(), asyncio.get_running_loop()
        async with asyncio.timeout(TIMEOUT * 2):
            await store.stats()
            listener = await store.listen(lambda: loop.call_soon_threadsafe(woken.set))
            await woken.wait()
            woken.clear()
            await store.enqueue([NewJob(f"{beyond}-{number}", f"name {beyond} {number}")])
            await woken.wait()
        assert listener.reconnections == 0
        await listener.close()
        await store.close()

    async def run() -> None:
        await asyncio.gather(*(use(number) for number in range(10)))

    hanging.freeze()
    try:
        asyncio.run(run())
    finally:
        hanging.thaw()


@pytest.mark.slow
def test_a_listener_goes_on_to_another_node(cluster: valkey.ValkeyCluster) -> None:
    """What is published anywhere is heard at each of them."""
    place = place_of_owner(cluster)
    owner, other = cluster.nodes[place], cluster.nodes[(place + 1) % 3]

    async def run() -> None:
        woken = asyncio.Event()
        subscription = Subscription(address(url(other)), f"{TAG}:wake", woken.set)
        await subscription.begun()
        assert not woken.is_set()
        async with asyncio.timeout(20):
            await woken.wait()
        assert subscription.reconnections > 0
        await subscription.close()

    owner.freeze()
    try:
        asyncio.run(run())
    finally:
        owner.thaw()


@pytest.mark.slow
def test_a_node_that_does_not_say_what_it_is_set_to_is_not_waited_for(cluster: valkey.ValkeyCluster) -> None:
    owner = cluster.nodes[place_of_owner(cluster)]

    async def run() -> None:
        home = Home(address(url(owner)), 1.0)
        await home.begin()
        await home.run(script("open"), TAG, (1,), lambda: None)
        assert "maxmemory_policy" in await home.about_the_server(TAG)
        owner.freeze()
        try:
            async with asyncio.timeout(TIMEOUT * 3):
                assert await home.about_the_server(TAG) == {}
        finally:
            owner.thaw()
        await home.close()

    asyncio.run(run())
