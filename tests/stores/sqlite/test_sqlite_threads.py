"""One store from many loops, threads and cancelled callers, and what one failing operation does to its neighbours (S5)."""

import asyncio
import gc
import threading
import time
import weakref

import pytest

from treadle.core.errors import InvalidArgument, StoreError
from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import NewJob, State
from treadle.core.store import Claim, Demand, EnqueueOn, Store, Wakeups
from treadle.stores.sqlite import SQLiteStore


@pytest.fixture(params=["file", "memory"])
def path(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "tasks.db"


def test_it_is_a_store_with_both_options():
    store = SQLiteStore(":memory:")
    assert isinstance(store, Store)
    assert isinstance(store, Wakeups)
    assert isinstance(store, EnqueueOn)


@pytest.mark.parametrize(
    "arguments", [{"path": ""}, {"path": "a\0b"}, {"synchronous": "OFF"}, {"busy_timeout": 0}, {"busy_timeout": float("nan")}]
)
def test_bad_settings_are_refused(arguments):
    with pytest.raises(InvalidArgument):
        SQLiteStore(**{"path": ":memory:", **arguments})


def test_many_loops_in_many_threads_share_a_store(path):
    store = SQLiteStore(path)
    failures = []

    def work(number):
        async def main():
            for step in range(20):
                await store.enqueue([NewJob(f"{number}-{step}", "a")])
                await store.get([f"{number}-{step}"])

        try:
            asyncio.run(main())
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def end():
        assert (await store.stats()).pending == 160
        await store.close()

    asyncio.run(end())
    assert not failures


def test_a_failing_operation_harms_no_other_of_its_batch(path):
    async def main():
        store = SQLiteStore(path)
        await store.migrate()
        good = [store.enqueue([NewJob(f"g{number}", "a")]) for number in range(10)]
        bad = [
            store.enqueue([NewJob("ok", "a"), NewJob("\ud800", "a")]),
            store.enqueue([NewJob("big", "a", priority=2**70)]),
            store.put_document("n", "k", "\ud800"),
        ]
        answers = await asyncio.gather(*good[:5], *bad, *good[5:], return_exceptions=True)
        assert [type(one) for one in answers[5:8]] == [InvalidArgument] * 3
        assert all(isinstance(one, list) for one in answers[:5] + answers[8:])
        assert {job.id for job in await store.find(EVERYTHING, limit=99)} == {f"g{number}" for number in range(10)}
        await store.close()

    asyncio.run(main())


def test_cancelled_callers_break_nothing(path):
    async def main():
        store = SQLiteStore(path)
        await store.migrate()
        tasks = [asyncio.create_task(store.enqueue([NewJob(str(number), "a")])) for number in range(50)]
        tasks += [asyncio.create_task(store.stats()) for _ in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        stored = {job.id for job in await store.find(EVERYTHING, limit=99)}
        assert {str(number) for number in range(1, 50, 2)} <= stored
        await store.close()

    asyncio.run(main())


def test_a_loop_that_closed_before_its_answer_harms_nobody(path):
    store = SQLiteStore(path)

    async def gone():
        task = asyncio.ensure_future(store.enqueue([NewJob("gone", "a")]))
        await asyncio.sleep(0)
        task.cancel()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(gone())
    loop.close()

    async def main():
        assert (await store.enqueue([NewJob("here", "a")]))[0].created
        await store.close()

    asyncio.run(main())


def test_closing_twice_and_using_it_again(tmp_path):
    async def main():
        store = SQLiteStore(tmp_path / "tasks.db")
        await store.close()
        await store.enqueue([NewJob("1", "a")])
        await store.close()
        await store.close()
        assert (await store.stats()).pending == 1
        await store.close()

    asyncio.run(main())


def test_a_long_read_holds_up_no_writer(tmp_path):
    async def main():
        store = SQLiteStore(tmp_path / "tasks.db")
        await store.enqueue([NewJob("1", "a")])
        reading, go_on = threading.Event(), threading.Event()

        def slow(session):
            session.value("count", "by_kind", **dict.fromkeys(PARAMETERS), states="[1]")
            reading.set()
            assert go_on.wait(10)
            return True

        task = asyncio.create_task(store._connection.read(slow))
        await asyncio.to_thread(reading.wait, 10)
        await asyncio.wait_for(store.enqueue([NewJob("2", "a")]), 5)
        go_on.set()
        assert await task
        await store.close()

    asyncio.run(main())


PARAMETERS = ("queues", "names", "of_faces", "functions", "plugins", "keyed", "cutoff", "ids")


def test_a_keeper_renews_from_another_thread(path):
    async def main():
        store = SQLiteStore(path)
        await store.enqueue([NewJob("1", "a")])
        await store.claim("t", [Demand(1)], worker="w", lease=60)
        keeper = store.lease_keeper()
        held = await asyncio.to_thread(keeper.renew, [Claim("1", "t"), Claim("1", "u")], 600.0)
        assert held == {Claim("1", "t")}
        [job] = await store.get(["1"])
        assert job.lease_until is not None
        assert job.lease_until.timestamp() > time.time() + 500
        keeper.close()
        await store.close()

    asyncio.run(main())


def test_a_store_that_is_dropped_ends_its_threads(tmp_path):
    store = SQLiteStore(tmp_path / "tasks.db")
    asyncio.run(store.stats())
    threads = [lane._thread for lane in store._connection._running[0] if hasattr(lane, "_thread")]
    gone = weakref.ref(store._connection)
    del store
    gc.collect()
    assert gone() is None
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_a_failure_inside_a_read_is_an_error_of_treadle(tmp_path):
    async def main():
        store = SQLiteStore(tmp_path / "tasks.db")
        await store.migrate()
        with pytest.raises(StoreError, match="failed: near"):
            await store._connection.read(lambda session: session.execute("SELEC 1", ()))
        with pytest.raises(InvalidArgument, match="unpaired surrogate"):
            await store.find(JobFilter(ids=["\ud800"]), limit=1)
        assert (await store.stats()).pending == 0
        await store.close()

    asyncio.run(main())


def test_steps_let_others_in_between(tmp_path):
    """A delete of 2,000 jobs is several transactions, and an enqueue asked for meanwhile does not wait for the last."""

    async def main():
        store = SQLiteStore(tmp_path / "tasks.db")
        await store.enqueue([NewJob(f"{number:05}", "a") for number in range(2000)])
        delete = asyncio.create_task(store.delete(JobFilter(states=frozenset({State.PENDING}))))
        while (await store.stats()).pending == 2000:
            pass
        await store.enqueue([NewJob("x", "a")])
        assert not delete.done()
        assert await delete == 2000
        await store.close()

    asyncio.run(main())
