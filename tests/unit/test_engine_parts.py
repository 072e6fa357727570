"""The engine's small parts by themselves: gathering, alarms, outages, services (E26, E27)."""

import asyncio
import logging
import threading
import time

import pytest

from treadle import StoreUnavailable, Tasks
from treadle.engine.abort import Aborted
from treadle.engine.alarm import Alarm
from treadle.engine.claimer import Claimer
from treadle.engine.clock import EngineClock
from treadle.engine.gatherer import Gatherer
from treadle.engine.outage import Outage
from treadle.engine.service import Service
from treadle.engine.setup import Setup
from treadle.stores.memory import MemoryStore
from treadle.testing import ManualClock


def test_callers_at_the_same_time_share_a_write_and_none_waits_for_a_timer():
    batches = []
    gate = asyncio.Event()

    async def write(items):
        batches.append(items)
        if len(batches) == 1:
            await gate.wait()
        return [item * 10 for item in items]

    async def main():
        gatherer = Gatherer(write, lambda item: 1, limit=100, load=1000)
        first = asyncio.create_task(gatherer.add(1))
        while not batches:
            await asyncio.sleep(0)
        others = [asyncio.create_task(gatherer.add(number)) for number in (2, 3, 4)]
        await asyncio.sleep(0)
        gate.set()
        assert [await one for one in (first, *others)] == [10, 20, 30, 40]

    asyncio.run(main())
    assert batches == [[1], [2, 3, 4]]


def test_a_batch_is_bounded_by_number_and_by_load():
    batches = []

    async def write(items):
        batches.append(items)
        await asyncio.sleep(0)
        return items

    async def main():
        gatherer = Gatherer(write, lambda item: item, limit=3, load=100)
        await asyncio.gather(*(gatherer.add(item) for item in (1, 2, 3, 4, 99, 500, 7)))

    asyncio.run(main())
    assert batches == [[1], [2, 3, 4], [99], [500], [7]]


def test_an_error_of_a_write_reaches_each_of_its_callers_and_no_other():
    gate = asyncio.Event()

    async def write(items):
        if items == [1]:
            await gate.wait()
        if 2 in items:
            raise StoreUnavailable("away")
        return items

    async def main():
        gatherer = Gatherer(write, lambda item: 1, limit=2, load=1000)
        calls = [asyncio.create_task(gatherer.add(item)) for item in (1, 2, 3, 4)]
        await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(*calls, return_exceptions=True)

    first, second, third, fourth = asyncio.run(main())
    assert (first, fourth) == (1, 4)
    assert isinstance(second, StoreUnavailable)
    assert isinstance(third, StoreUnavailable)


def test_a_caller_that_goes_away_harms_nobody():
    async def write(items):
        await asyncio.sleep(0)
        return items

    async def main():
        gatherer = Gatherer(write, lambda item: 1, limit=10, load=1000)
        calls = [asyncio.create_task(gatherer.add(item)) for item in (1, 2)]
        await asyncio.sleep(0)
        calls[0].cancel()
        assert await calls[1] == 2

    asyncio.run(main())


def test_an_alarm_rung_before_the_sleep_or_from_a_thread_ends_it():
    async def main():
        alarm = Alarm()
        alarm.ring()
        await alarm.wait()
        threading.Thread(target=alarm.ring).start()
        await asyncio.wait_for(alarm.wait(3600), 5)
        await alarm.wait(0.001)

    asyncio.run(main())


def test_an_alarm_of_a_closed_loop_can_still_be_rung():
    async def main():
        return Alarm()

    alarm = asyncio.run(main())
    thread = threading.Thread(target=alarm.ring)
    thread.start()
    thread.join()


def test_aborted_wakes_awaiters_and_blocked_threads_and_keeps_its_first_reason():
    async def main():
        aborted = Aborted()
        awaiting = asyncio.ensure_future(_await(aborted))
        blocked = asyncio.create_task(asyncio.to_thread(aborted.wait, 20))
        await asyncio.sleep(0)
        aborted.set("timeout")
        aborted.set("other")
        await awaiting
        assert await blocked
        assert aborted.is_set()
        assert aborted.reason == "timeout"
        await aborted
        assert aborted.wait(0)

    async def _await(aborted):
        await aborted

    asyncio.run(main())


def test_an_outage_writes_few_lines_and_pauses_longer_and_longer(caplog):
    outage = Outage("claiming", logging.getLogger("treadle"))
    pauses = [outage.failed(StoreUnavailable("no server")) for _ in range(50)]
    outage.over()
    outage.over()
    assert caplog.records[0].getMessage().startswith("claiming: the store failed")
    assert len(caplog.records) == 2
    assert pauses[0] < 0.2
    assert all(1.5 <= pause <= 2.5 for pause in pauses[6:])


def test_a_fault_of_ours_that_lasts_is_told_once_with_its_traceback_and_again_when_it_becomes_another(caplog):
    outage = Outage("scheduler", logging.getLogger("treadle"))
    pauses = [outage.failed(ValueError("a fault")) for _ in range(50)]
    outage.failed(StoreUnavailable("no server"))
    outage.failed(KeyError("another"))
    outage.over()
    outage.over()
    assert [(record.levelname, record.getMessage().split(" after ")[0]) for record in caplog.records] == [
        ("ERROR", "scheduler failed, trying again"),
        ("WARNING", "scheduler: the store failed, trying again: no server"),
        ("ERROR", "scheduler failed, trying again"),
        ("WARNING", "scheduler: it works again"),
    ]
    assert caplog.records[0].exc_info is not None and "a fault" in str(caplog.records[0].exc_info[1])
    assert all(1.5 <= pause <= 2.5 for pause in pauses[6:])


class Counting(Service):
    def __init__(self, clock=None):
        super().__init__(3600, EngineClock(clock), logging.getLogger("treadle"))
        self.rounds = 0
        self.fail = None

    async def run_once(self):
        self.rounds += 1
        if self.fail:
            raise self.fail


def test_a_service_stops_safely_twice_and_before_its_start_and_starts_again():
    async def main():
        service = Counting()
        await service.stop()
        service.start()
        service.start()
        await asyncio.sleep(0)
        await service.stop()
        await service.stop()
        assert service.rounds == 1
        service.start()
        await asyncio.sleep(0)
        await service.stop()
        assert service.rounds == 2

    asyncio.run(main())


@pytest.mark.parametrize("error", [StoreUnavailable("away"), ValueError("a fault of ours")])
def test_a_service_survives_what_its_rounds_raise(error, caplog):
    async def main():
        clock = ManualClock()
        service = Counting(clock)
        service.fail = error
        service.start()
        await asyncio.sleep(0)
        service.fail = None
        clock.advance(1)
        while service.rounds < 2:
            await asyncio.sleep(0)
        await service.stop()

    asyncio.run(main())
    assert caplog.records


@pytest.mark.parametrize("error", [StoreUnavailable("away"), ValueError("a fault of ours")])
def test_a_service_that_has_much_to_do_does_not_spin_while_it_fails(error, caplog):
    async def main():
        service = Counting()
        service.interval, service.fail = 0, error
        started = time.monotonic()
        service.start()
        while service.rounds < 4:
            await asyncio.sleep(0)
        assert time.monotonic() - started > 0.4  # 0.1, 0.2 and 0.4 s, each a quarter off at most
        await service.stop()

    asyncio.run(main())
    assert len(caplog.records) == 1


def test_at_the_bound_of_threads_only_async_handlers_are_claimed_and_it_is_told_once_each_time(caplog):
    async def main():
        store, taken = MemoryStore(), 9
        tasks = Tasks(store, concurrency=1)
        tasks.handle("plain", lambda payload: None)

        @tasks.handler("async")
        async def handler(payload):
            pass

        setup = Setup(store, tasks._registry, tasks._profile, tasks.settings, EngineClock(), logging.getLogger("treadle"))
        claimer = Claimer(setup, lambda: taken)
        await tasks.enqueue_many([{"name": name} for name in ("plain", "async", "plain", "async")])
        for _ in range(3):
            assert {job.name for _, job in await claimer.claim(1)} <= {"async"}
        assert claimer.held_back
        taken = 8
        assert [job.name for _, job in await claimer.claim(4)] == ["plain"]  # there is one thread more, and no second
        assert claimer.held_back
        taken = 5
        assert [job.name for _, job in await claimer.claim(4)] == ["plain"]
        assert not claimer.held_back
        taken = 9
        assert await claimer.claim(1) == []

    asyncio.run(main())
    assert [record.getMessage()[:34] for record in caplog.records] == ["9 threads are held by plain handle"] * 2
