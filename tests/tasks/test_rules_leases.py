"""What a worker owes to the leases of its jobs, whatever handlers, threads, clocks and log filters do (E20, E21)."""

import asyncio
import logging
import threading
from datetime import timedelta

import pytest
from looping import run, until, until_async

from treadle import Tasks
from treadle.core.store import Demand
from treadle.stores.memory import MemoryStore
from treadle.testing import ManualClock

pytestmark = pytest.mark.timeout(60)


async def leased(tasks, enqueued, until):
    return (await tasks.get(enqueued.id)).lease_until == until


def _logger():
    logger = logging.getLogger("treadle.of.a.test")
    logger.handlers.clear()
    logger.filters.clear()
    logger.propagate = False
    return logger


class Kept(MemoryStore):
    """A store whose keepers go through `renewing`, which a test replaces."""

    def lease_keeper(self):
        return _Keeper(super().lease_keeper(), self)

    def renewing(self, renew, claims, lease, now):
        return renew(claims, lease, now)


class _Keeper:
    def __init__(self, keeper, store):
        self.keeper, self.store = keeper, store

    def renew(self, claims, lease, now=None):
        return self.store.renewing(self.keeper.renew, claims, lease, now)

    def close(self):
        self.keeper.close()


# -- jobs that are claimed together


def test_all_that_was_claimed_together_is_renewed_while_the_first_holds_the_loop():
    async def main():
        store = Kept()
        tasks = Tasks(store, concurrency=3, lease=0.15)
        renewed, all_of_them = set(), threading.Event()

        def renewing(renew, claims, lease, now):
            held = renew(claims, lease, now)
            renewed.update(held)
            if len(renewed) == 3:
                all_of_them.set()
            return held

        store.renewing = renewing
        waited = []

        @tasks.handler("job")
        async def job(payload):
            if not waited:
                waited.append(all_of_them.wait(10))

        await tasks.enqueue_many([{"name": "job"}] * 3)
        assert await tasks.run_once() == 3
        assert waited == [True]
        assert {job.attempts for job in await tasks.list(states=["done"])} == {1}

    run(main())


def test_what_lost_its_lease_behind_a_handler_that_holds_the_loop_is_not_begun():
    """On Python 3.12 and later it would be begun in the same breath, before on the loop's next turn."""

    class Losses(logging.Handler):
        def __init__(self):
            super().__init__()
            self.left, self.all = 2, threading.Event()

        def emit(self, record):
            self.left -= "was lost" in record.getMessage()
            if not self.left:
                self.all.set()

    async def main():
        store = Kept()
        logger = _logger()
        logger.addHandler(losses := Losses())
        tasks = Tasks(store, concurrency=3, lease=0.15, logger=logger)
        store.renewing = lambda renew, claims, lease, now: {claim for claim in claims if claim.id == first.id}
        ran = []

        @tasks.handler("job")
        async def job(payload):
            ran.append((payload, losses.all.wait(10)))

        first = await tasks.enqueue("job", 1, priority=1)
        await tasks.enqueue_many([{"name": "job", "payload": number} for number in (2, 3)])
        await tasks.run_once()
        assert ran == [(1, True)]
        assert tasks._engine().worker.running == []
        assert [(job.payload, job.state) for job in await tasks.list(states=["running"])] == [(3, "running"), (2, "running")]

    run(main())


# -- extending by hand


def test_a_lease_is_never_extended_to_less_than_it_is():
    async def main():
        clock = ManualClock()
        tasks = Tasks("memory:", clock=clock, lease=60)
        leases = []

        @tasks.handler("job")
        async def job(payload, ctx):
            for seconds in (600, 1, 0.001):
                assert await ctx.extend_lease(seconds)
                leases.append(((await tasks.get(ctx.job.id)).lease_until - clock.now()).total_seconds())

        await tasks.enqueue("job")
        await tasks.drain()
        assert leases == [600, 60, 60]

    run(main())


@pytest.mark.parametrize("order", ["the renewal ends later", "the extension ends later"])
def test_a_renewal_under_way_while_a_lease_is_extended_does_not_undo_it_for_good(order):
    async def main():
        clock = ManualClock()
        store = Kept()
        tasks = Tasks(store, clock=clock, lease=60)
        began = clock.now()
        under_way, go, end = threading.Event(), threading.Event(), asyncio.Event()

        def renewing(renew, claims, lease, now):
            if lease > 60 or under_way.is_set():
                return renew(claims, lease, now)
            under_way.set()
            assert go.wait(20)
            return renew(claims, lease, now)

        store.renewing = renewing
        extend = store.renew

        async def extending(*args, **options):
            held = await extend(*args, **options)
            if order == "the extension ends later":
                go.set()
                await until_async(lambda: leased(tasks, enqueued, began + timedelta(seconds=100)))
            return held

        store.renew = extending

        @tasks.handler("job")
        async def job(payload, ctx):
            clock.advance(40)
            await until(under_way.is_set)
            assert await ctx.extend_lease(600)
            go.set()
            await until_async(lambda: leased(tasks, enqueued, began + timedelta(seconds=100)))  # by the renewal
            clock.advance(30)
            await until_async(lambda: leased(tasks, enqueued, began + timedelta(seconds=640)))  # and put right by the next
            end.set()

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        async with asyncio.timeout(10):
            await end.wait()
        await tasks.stop()
        assert (await tasks.get(enqueued.id)).attempts == 1

    run(main())


# -- the renewer's thread


def test_a_thread_that_the_system_refuses_to_the_renewer_costs_no_attempt_and_is_asked_for_again(monkeypatch, caplog):
    refused = []
    start = threading.Thread.start

    def refusing(thread):
        if thread.name == "treadle-renewer" and len(refused) < 2:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refusing)

    async def main():
        tasks = Tasks("memory:", concurrency=2)
        ran = []
        tasks.handle("job", ran.append)
        jobs = await tasks.enqueue_many([{"name": "job", "payload": number} for number in (1, 2)])
        await tasks.start()
        async with asyncio.timeout(10):
            while (await tasks.stats()).done < 2:
                await asyncio.sleep(0)
        await tasks.stop()
        assert (sorted(ran), len(refused)) == ([1, 2], 2)
        assert [(await tasks.get(one.id)).attempts for one in jobs] == [1, 1]
        assert tasks._engine().worker.running == []

    run(main())
    assert "claiming failed, trying again" in caplog.text


def test_a_log_filter_that_raises_does_not_end_the_renewer():
    async def main():
        clock = ManualClock()
        store = Kept()
        logger = _logger()
        lost, renewed, go = threading.Event(), threading.Event(), asyncio.Event()

        def raising(record):
            if "was lost" in record.getMessage():
                lost.set()
                raise ValueError("a fault of the filter's")
            return True

        logger.addFilter(raising)
        tasks = Tasks(store, clock=clock, lease=60, concurrency=2, logger=logger)

        def renewing(renew, claims, lease, now):
            if lost.is_set():
                renewed.set()
            return {claim for claim in renew(claims, lease, now) if claim.id == kept.id}

        store.renewing = renewing
        signs = []

        @tasks.handler("job")
        async def job(payload, ctx):
            signs.append(ctx.aborted)
            await go.wait()

        kept = await tasks.enqueue("job")
        await tasks.enqueue("job")
        await tasks.start()
        await until(lambda: len(signs) == 2)
        clock.advance(30)
        await until(lost.is_set)
        await until(lambda: any(sign.reason == "the lease was lost" for sign in signs))
        async with asyncio.timeout(10):
            while not renewed.is_set():
                clock.advance(30)
                for _ in range(1000):
                    await asyncio.sleep(0)
        go.set()
        await tasks.stop()
        assert (await tasks.get(kept.id)).attempts == 1

    run(main())


def test_leases_of_running_jobs_that_are_over_are_renewed_here_and_not_taken_back():
    """As after a pause of the machine, when the sweep comes before the renewal: what runs here must not run twice."""

    async def main():
        clock = ManualClock()
        store = Kept()
        tasks = Tasks(store, clock=clock, lease=60)
        go, end = threading.Event(), asyncio.Event()

        def renewing(renew, claims, lease, now):
            assert go.wait(20)
            return renew(claims, lease, now)

        store.renewing = renewing

        @tasks.handler("job")
        async def job(payload, ctx):
            clock.advance(3600)
            await tasks._engine().reclaimer.run_once()
            assert await leased(tasks, enqueued, clock.now() + timedelta(seconds=60))
            end.set()

        enqueued = await tasks.enqueue("job", max_attempts=1)
        await tasks.enqueue("lost")
        dead = Demand(1, names={"lost": 5})
        await store.claim("token", [dead], worker="dead", lease=60, now=clock.now())
        await tasks.run_once()
        go.set()
        assert end.is_set()
        stored = await tasks.get(enqueued.id)
        assert (stored.state, stored.attempts) == ("done", 1)
        assert [(one.name, one.state) for one in await tasks.list(states=["pending"])] == [("lost", "pending")]

    run(main())


# -- what is told, and what is left behind


def test_the_sign_that_a_handler_sees_is_the_one_that_is_set():
    async def main():
        tasks = Tasks("memory:")
        seen = []

        @tasks.handler("job")
        async def job(payload, ctx):
            [execution] = tasks._engine().worker._running.values()
            assert ctx.aborted is execution.aborted is ctx.aborted
            threading.Thread(target=execution.lose).start()
            await ctx.aborted
            seen.append((ctx.aborted.reason, execution.lost))

        await tasks.enqueue("job")
        await tasks.drain()
        assert seen == [("the lease was lost", True)]

    run(main())


def test_waiting_for_the_sign_again_and_again_leaves_nothing_behind():
    async def main():
        tasks = Tasks("memory:")
        left = []

        @tasks.handler("job")
        async def job(payload, ctx):
            for _ in range(20):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(ctx.aborted, 0)
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.001):
                        await ctx.aborted
            left.append(len(ctx.aborted._waiters))

        await tasks.enqueue("job")
        await tasks.drain()
        assert left == [0]

    run(main())


def test_a_timeout_of_the_handlers_own_is_told_with_its_traceback_and_ours_without(caplog):
    async def main():
        tasks = Tasks("memory:", max_attempts=1)

        @tasks.handler("own")
        async def own(payload):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()

        @tasks.handler("ours", timeout=0.01)
        async def ours(payload):
            await asyncio.Event().wait()

        await tasks.enqueue("own")
        await tasks.enqueue("ours")
        await tasks.drain()

    run(main())
    told = {record.job_name: record.exc_info for record in caplog.records}
    assert told["own"] is not None and told["own"][0] is TimeoutError
    assert told["ours"] is None


def test_the_fields_of_a_handlers_own_log_records_are_kept_beside_the_jobs(caplog):
    async def main():
        tasks = Tasks("memory:")

        @tasks.handler("job")
        async def job(payload, ctx):
            ctx.log.warning("first", extra={"user": 7})
            ctx.log.warning("second")

        return await tasks.enqueue("job"), await tasks.drain()

    enqueued, _ = run(main())
    first, second = caplog.records
    assert (first.user, first.job_id, first.attempt) == (7, enqueued.id, 1)
    assert second.job_id == enqueued.id


def test_a_log_filter_that_raises_ends_no_warnings_about_slow_jobs():
    async def main():
        logger = _logger()
        told, go = asyncio.Event(), asyncio.Event()
        seen = []

        def raising(record):
            if "has been running" in record.getMessage():
                seen.append(record.job_name)
                if len(seen) == 1:
                    raise ValueError("a fault of the filter's")
                told.set()
            return True

        logger.addFilter(raising)
        tasks = Tasks("memory:", warn_after=0.02, concurrency=2, logger=logger)

        @tasks.handler("job")
        async def job(payload):
            await go.wait()

        await tasks.enqueue("job")
        await tasks.start()
        await until(lambda: len(seen) == 1)
        await tasks.enqueue("job")
        async with asyncio.timeout(10):
            await told.wait()
        go.set()
        await tasks.stop()

    run(main())
