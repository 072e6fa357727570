"""FaultyStore: each fault befalls the calls that it was set for, and no others."""

from __future__ import annotations

import asyncio

import pytest

from treadle.core.errors import InvalidArgument, StoreUnavailable
from treadle.core.outcome import Done
from treadle.core.store import Ending, Store, Wakeups
from treadle.stores.memory.adapter import MemoryStore
from treadle.testing import FaultyStore, JobFactory, store_contract

TestFaultyStoreWithoutFaults = store_contract("faulty without faults", lambda: FaultyStore(MemoryStore()), model_examples=2)


def test_it_is_a_store_with_the_capabilities_of_the_one_inside():
    store = FaultyStore(MemoryStore())
    assert isinstance(store, Store)
    assert isinstance(store, Wakeups)


def test_a_call_that_fails_before_reaches_no_store():
    async def scenario() -> None:
        store = FaultyStore(MemoryStore())
        make = JobFactory(store)
        store.fail_before("enqueue", times=2)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await make.pending()
        await make.pending()
        assert (await store.stats()).pending == 1
        assert store.calls["enqueue"] == 3

    asyncio.run(scenario())


def test_a_call_that_fails_after_is_applied_and_its_answer_lost():
    async def scenario() -> None:
        store = FaultyStore(MemoryStore())
        make = JobFactory(store)
        held = await make.running()
        store.fail_after("finish")
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await store.finish([Ending(held.claim, Done())])
        store.heal()
        assert (await store.stats()).done == 1
        assert await store.finish([Ending(held.claim, Done())]) == set()

    asyncio.run(scenario())


def test_an_error_of_ones_own_is_raised():
    async def scenario() -> None:
        store = FaultyStore(MemoryStore())
        store.fail_before("claim", error=lambda: OSError("cut"))
        with pytest.raises(OSError, match="cut"):
            await store.claim("t", [], worker="w", lease=1.0)

    asyncio.run(scenario())


def test_a_held_call_waits_until_it_is_let_go():
    async def scenario() -> None:
        store = FaultyStore(MemoryStore())
        gate = store.hold("enqueue", times=1)
        slow = asyncio.create_task(JobFactory(store).pending("slow"))
        while not store.calls["enqueue"]:
            await asyncio.sleep(0)
        assert (await store.stats()).pending == 0
        gate.set()
        await slow
        assert (await store.stats()).pending == 1

    asyncio.run(scenario())


def test_a_slow_call_takes_longer_and_is_done():
    async def scenario() -> None:
        store = FaultyStore(MemoryStore())
        store.slow("stats", seconds=0.01, times=1)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await store.stats()
        assert loop.time() - began >= 0.01

    asyncio.run(scenario())


def test_faults_are_used_up_one_after_the_other():
    async def scenario() -> None:
        store = FaultyStore(MemoryStore())
        store.fail_before("stats", times=1, error=lambda: OSError("one"))
        store.fail_before("stats", times=1, error=lambda: OSError("two"))
        for text in ("one", "two"):
            with pytest.raises(OSError, match=text):
                await store.stats()
        await store.stats()

    asyncio.run(scenario())


def test_keepers_break_and_heal():
    async def scenario() -> None:
        store = FaultyStore(MemoryStore())
        make = JobFactory(store)
        held = await make.running()
        keeper = store.lease_keeper()
        store.break_keepers()
        with pytest.raises(StoreUnavailable):
            keeper.renew([held.claim], 60.0, make.clock.now())
        store.heal()
        assert keeper.renew([held.claim], 60.0, make.clock.now()) == {held.claim}
        keeper.close()

    asyncio.run(scenario())


def test_a_fault_of_an_unknown_operation_is_refused():
    with pytest.raises(InvalidArgument, match="no async operation 'enqeue'"):
        FaultyStore(MemoryStore()).fail_before("enqeue")
