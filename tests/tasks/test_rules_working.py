"""Workers that are started, stopped, drained and left in every order, and what they owe to jobs meanwhile (E18 to E28, T1)."""

import asyncio
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from looping import run, until, until_async

from treadle import Fixed, InvalidArgument, StoreUnavailable, Tasks
from treadle.core.outcome import RetryAfter
from treadle.core.store import Demand, Ending
from treadle.engine import attempts, service, worker
from treadle.stores.memory import MemoryStore
from treadle.testing import ManualClock

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/jobs.db"


class Gated(MemoryStore):
    """A store whose claims, or subscriptions, or results wait for a gate."""

    def __init__(self, *names):
        super().__init__()
        self.names = names
        self.entered, self.gate = asyncio.Event(), asyncio.Event()
        self.batches = []

    async def _through(self, name):
        if name in self.names:
            self.entered.set()
            await self.gate.wait()

    async def claim(self, *args, **options):
        claimed = await super().claim(*args, **options)
        await self._through("claim")
        return claimed

    async def listen(self, wake):
        await self._through("listen")
        return await super().listen(wake)

    async def expired(self, *args, **options):
        await self._through("expired")
        return await super().expired(*args, **options)

    async def finish(self, endings, **options):
        self.batches.append(len(endings))
        await self._through("finish")
        return await super().finish(endings, **options)


# -- stopping (E24)


def test_a_stop_ends_a_drain_and_nothing_runs_after_it(url):
    async def main():
        tasks = Tasks(url)
        started = asyncio.Event()
        ran = 0

        @tasks.handler("job")
        async def job(payload):
            nonlocal ran
            ran += 1
            started.set()
            await asyncio.sleep(0)

        await tasks.enqueue_many([{"name": "job"}] * 200)
        draining = asyncio.create_task(tasks.drain())
        await started.wait()
        await tasks.stop()
        stopped_at = ran
        assert await draining == ran == stopped_at < 200
        stats = await tasks.stats()
        assert (stats.done, stats.pending, stats.running) == (ran, 200 - ran, 0)
        assert await tasks.drain() == 200 - stopped_at  # a drain that begins after the stop is another matter
        await tasks.close()

    run(main())


def test_a_drain_that_begins_during_a_stop_runs_nothing_and_holds_nothing_up():
    async def main():
        store = Gated("claim")
        tasks = Tasks(store, concurrency=2)
        tasks.handle("job", _nothing)
        enqueued = await tasks.enqueue("job")
        await tasks.start()
        await store.entered.wait()
        stopping = asyncio.create_task(tasks.stop())
        await asyncio.sleep(0)
        store.names = ()
        await tasks.enqueue("job")
        assert await tasks.drain() == 0
        store.gate.set()
        await stopping
        job = await tasks.get(enqueued.id)
        assert (job.state, job.attempts, job.interruptions) == ("pending", 0, 0)  # claimed in the moment of stopping
        assert (await tasks.stats()).pending == 2

    run(main())


def test_a_drain_beside_a_started_worker_shares_its_slots():
    async def main():
        store = Gated("claim")
        tasks = Tasks(store, concurrency=2)
        running = most = 0

        @tasks.handler("job")
        async def job(payload):
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _ in range(5):
                await asyncio.sleep(0)
            running -= 1

        await tasks.enqueue_many([{"name": "job"}] * 20)
        await tasks.start()
        await store.entered.wait()
        draining = [asyncio.create_task(tasks.drain()) for _ in range(3)]
        for _ in range(20):
            await asyncio.sleep(0)
        store.gate.set()
        await asyncio.gather(*draining)
        await until_async(lambda: _done(tasks, 20))
        await tasks.stop()
        assert most == 2

    run(main())


def test_slots_that_a_cancelled_drain_leaves_are_used_by_the_started_worker():
    class Before(Gated):
        async def claim(self, *args, **options):
            await self._through("claim")
            return await super().claim(*args, **options)

    async def main():
        store = Before()
        tasks = Tasks(store, concurrency=2, poll_interval=3600)
        go, running = asyncio.Event(), []

        @tasks.handler("job")
        async def job(payload):
            running.append(payload)
            await go.wait()

        await tasks.start()
        for _ in range(20):
            await asyncio.sleep(0)  # until the worker sleeps, having found nothing
        store.names = ("claim",)
        draining = asyncio.create_task(tasks.drain())
        await store.entered.wait()
        await tasks.enqueue_many([{"name": "job", "payload": number} for number in range(6)])
        for _ in range(20):
            await asyncio.sleep(0)  # the worker wakes, and finds every slot taken by the drain
        store.names = ()
        store.gate.set()
        await until(lambda: len(running) == 2)
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        go.set()
        async with asyncio.timeout(10):
            await until_async(lambda: _done(tasks, 6))
        await tasks.stop()

    run(main())


def test_a_drain_that_begins_while_a_stop_waits_for_jobs_runs_nothing():
    async def main():
        tasks = Tasks("memory:", concurrency=2)
        started, go, ran = asyncio.Event(), asyncio.Event(), []

        @tasks.handler("job")
        async def job(payload):
            ran.append(payload)
            started.set()
            await go.wait()

        await tasks.enqueue("job", "first")
        await tasks.start()
        await started.wait()
        stopping = asyncio.create_task(tasks.stop())
        for _ in range(20):
            await asyncio.sleep(0)
        await tasks.enqueue("job", "second")
        assert await tasks.drain() == 0
        go.set()
        await stopping
        assert ran == ["first"]

    run(main())


def test_a_handler_that_ends_well_in_the_last_moments_of_a_stop_has_succeeded():
    async def main():
        tasks = Tasks("memory:")
        started = asyncio.Event()

        @tasks.handler("job", timeout=60)
        async def job(payload):
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return  # all that was left to do is done

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        await tasks.stop(0)
        assert await _is_done(tasks, enqueued)

    run(main())


def test_a_second_stop_without_grace_ends_the_first_at_once():
    async def main():
        tasks = Tasks("memory:")
        started = asyncio.Event()

        @tasks.handler("job")
        async def job(payload):
            started.set()
            await asyncio.Event().wait()

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        first = asyncio.create_task(tasks.stop(grace=3600))
        await asyncio.sleep(0)
        await tasks.stop(0)
        await first
        assert (await tasks.get(enqueued.id)).interruptions == 1

    run(main())


@pytest.mark.parametrize("what", ["claim", "expired"])
def test_a_store_that_never_answers_does_not_hold_a_stop_up(what, monkeypatch):
    monkeypatch.setattr(worker, "PATIENCE", 0.02)
    monkeypatch.setattr(service, "PATIENCE", 0.02)

    async def main():
        store = Gated(what)
        tasks = Tasks(store)
        tasks.handle("job", lambda payload: None)
        await tasks.start()
        await store.entered.wait()
        await tasks.stop(0)
        store.names = ()
        await tasks.enqueue("job")
        assert await tasks.drain() == 1

    run(main())


def test_a_stop_before_the_start_is_complete_ends_it():
    async def main():
        store = Gated("listen")
        tasks = Tasks(store)
        tasks.handle("job", lambda payload: None)
        starting = asyncio.create_task(tasks.start())
        await store.entered.wait()
        await tasks.stop()
        store.gate.set()
        await starting
        enqueued = await tasks.enqueue("job")
        for _ in range(100):
            await asyncio.sleep(0)
        assert (await tasks.get(enqueued.id)).state == "pending"
        tasks.every("job", 60)  # refused after a start
        await tasks.start()
        await until_async(lambda: _is_done(tasks, enqueued))
        await tasks.stop()

    run(main())


async def _is_done(tasks, enqueued):
    return (await tasks.get(enqueued.id)).state == "done"


def test_a_start_during_a_stop_waits_for_it_and_counts():
    async def main():
        tasks = Tasks("memory:")
        started, go = asyncio.Event(), asyncio.Event()

        @tasks.handler("job")
        async def job(payload):
            started.set()
            await go.wait()

        await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        stopping = asyncio.create_task(tasks.stop())
        await asyncio.sleep(0)
        starting = asyncio.create_task(tasks.start())
        second = await tasks.enqueue("job")
        await asyncio.sleep(0)
        assert not starting.done()
        go.set()
        await stopping
        await starting
        await until_async(lambda: _is_done(tasks, second))
        await tasks.stop()

    run(main())


def test_fifty_quick_restarts_lose_and_repeat_nothing(url):
    async def main():
        tasks = Tasks(url)
        runs = []

        @tasks.handler("job")
        async def job(payload):
            runs.append(payload)

        for number in range(50):
            await tasks.start()
            await tasks.enqueue("job", number)
            await tasks.stop()
        await tasks.drain()
        assert sorted(runs) == list(range(50))
        await tasks.close()
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("treadle")] == []

    run(main())


# -- a loop that ends around its worker


def test_a_loop_that_ended_renews_no_lease_though_its_process_lives_on():
    """As with asyncio.run in a notebook: the job is for others to take once its lease is over (E20, E21)."""
    tasks = Tasks("memory:")

    async def main():
        started = asyncio.Event()

        @tasks.handler("job")
        async def job(payload):
            started.set()
            await asyncio.Event().wait()

        await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        return tasks._engine()

    engine = asyncio.run(main())
    assert engine.worker._attempts.renewer._holds == {}
    assert engine.worker.running == []


def test_results_that_a_loop_ended_over_are_left_to_their_leases():
    tasks = Tasks(Gated("finish"), concurrency=3)

    async def main():
        @tasks.handler("job")
        async def job(payload):
            if payload:
                await tasks.store.entered.wait()  # the others end while the first one's result is being written

        await tasks.enqueue_many([{"name": "job", "payload": number} for number in range(3)])
        await tasks.start()
        await until(lambda: tasks._engine().worker._settler.backlog == 2)
        return tasks._engine()

    engine = asyncio.run(main())
    assert engine.worker._attempts.renewer._holds == {}


async def _nothing(payload):
    pass


def test_a_cancelled_drain_leaves_what_runs_to_its_end():
    async def main():
        tasks = Tasks("memory:", concurrency=3)
        running, go = [], asyncio.Event()

        @tasks.handler("job")
        async def job(payload):
            running.append(payload)
            await go.wait()

        await tasks.enqueue_many([{"name": "job"}] * 6)
        draining = asyncio.create_task(tasks.drain())
        await until(lambda: len(running) == 3)
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining
        go.set()
        assert await tasks.drain() == 3
        assert (await tasks.stats()).done == 6

    run(main())


# -- leases (E20, E21)


def test_a_job_that_lost_its_lease_and_still_runs_here_is_not_taken_round_and_round():
    async def main():
        clock = ManualClock()
        store = MemoryStore()
        tasks = Tasks(store, clock=clock, concurrency=2)
        started, go = asyncio.Event(), asyncio.Event()

        @tasks.handler("job")
        async def job(payload, ctx):
            started.set()
            await go.wait()

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        [execution] = tasks._engine().worker._running.values()
        await store.finish([Ending(execution.claim, RetryAfter(0.0, "taken back"))], now=clock.now())
        tasks._engine().worker.wake()

        async def put_off():
            job = await tasks.get(enqueued.id)
            return job.state == "pending" and job.run_at == clock.now() + timedelta(seconds=attempts.BUSY)

        await until_async(put_off)
        assert (await tasks.get(enqueued.id)).attempts == 1  # what was not begun is not spent
        go.set()
        await until(lambda: not tasks._engine().worker.running)
        clock.advance(attempts.BUSY)
        await until_async(lambda: _is_done(tasks, enqueued))
        await tasks.stop()

    run(main())


def test_a_renewal_does_not_shorten_a_lease_that_was_extended_by_hand():
    async def main():
        clock = ManualClock()
        store = MemoryStore()
        tasks = Tasks(store, clock=clock, lease=60, concurrency=2)
        began = clock.now()
        extended, go = asyncio.Event(), asyncio.Event()

        @tasks.handler("extends")
        async def extends(payload, ctx):
            assert await ctx.extend_lease(600)
            extended.set()
            await go.wait()

        @tasks.handler("other")
        async def other(payload):
            await go.wait()

        one, two = await tasks.enqueue("extends"), await tasks.enqueue("other")
        await tasks.start()
        await extended.wait()
        await until_async(lambda: _state(tasks, two, "running", 1))
        clock.advance(40)
        await until_async(lambda: _leased(tasks, two, clock.now() + timedelta(seconds=60)))  # by the same round of renewals
        assert (await tasks.get(one.id)).lease_until == began + timedelta(seconds=600)
        clock.advance(530)  # and when a third of the usual lease is over at its end, it is renewed as usual
        await until_async(lambda: _leased(tasks, one, clock.now() + timedelta(seconds=60)))
        go.set()
        await tasks.stop()

    run(main())


def test_what_run_once_keeps_aside_keeps_its_lease():
    """A job that is due again at once waits, claimed, for the others: however long they take, it must not expire unrun."""

    async def main():
        clock = ManualClock()
        tasks = Tasks("memory:", clock=clock, concurrency=2, retry=Fixed(0), poll_interval=0.01)

        @tasks.handler("fails", max_attempts=2)
        async def fails(payload):
            raise ValueError

        @tasks.handler("long")
        async def long(payload):
            await until_async(lambda: _state(tasks, failing, "running", 2))
            clock.advance(40)
            renewed = clock.now() + timedelta(seconds=60)
            await until_async(lambda: _leased(tasks, failing, renewed))

        failing = await tasks.enqueue("fails")
        await tasks.enqueue("long")
        assert await tasks.run_once() == 2
        job = await tasks.get(failing.id)
        assert (job.state, job.attempts) == ("pending", 1)

    run(main())


async def _state(tasks, enqueued, state, attempts):
    job = await tasks.get(enqueued.id)
    return (job.state, job.attempts) == (state, attempts)


async def _leased(tasks, enqueued, until):
    return (await tasks.get(enqueued.id)).lease_until == until


def test_a_claim_that_is_recalled_late_gets_a_whole_lease():
    class Lossy(MemoryStore):
        lost = False

        async def claim(self, *args, **options):
            claimed = await super().claim(*args, **options)
            if claimed.jobs and not self.lost:
                self.lost = True
                raise StoreUnavailable("the answer was lost")
            return claimed

    async def main():
        clock = ManualClock()
        store = Lossy()
        tasks = Tasks(store, clock=clock, lease=60)
        leases = asyncio.Queue()

        @tasks.handler("job", max_attempts=1)
        async def job(payload, ctx):
            [stored] = await store.get([ctx.job.id])
            leases.put_nowait(stored.lease_until - clock.now())

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        await until(lambda: store.lost)
        clock.advance(50)
        assert await leases.get() == timedelta(seconds=60)
        await tasks.stop()
        assert await _is_done(tasks, enqueued)

    run(main())


@pytest.mark.slow
def test_a_handler_that_holds_its_loop_for_ever_loses_its_job_to_another_worker_after_its_timeout():
    """Renewal ends with the job's timeout and a short grace, whatever the handler's loop does (E20)."""
    store = MemoryStore()
    blocked, release, seen = threading.Event(), threading.Event(), []

    async def blocking():
        tasks = Tasks(store, lease=0.2)

        @tasks.handler("job", timeout=0.05)
        async def job(payload):
            blocked.set()
            release.wait(30)

        await tasks.enqueue("job")
        await tasks.drain()

    async def other():
        tasks = Tasks(store, poll_interval=0.02)
        done = asyncio.Event()

        @tasks.handler("job")
        async def job(payload, ctx):
            seen.append(ctx.attempt)
            done.set()

        await tasks.start()
        await done.wait()
        await tasks.stop()
        assert (await tasks.stats()).done == 1

    thread = threading.Thread(target=lambda: asyncio.run(blocking()))
    thread.start()
    assert blocked.wait(20)
    try:
        run(other())
    finally:
        release.set()
        thread.join()
    assert seen == [2]


# -- batches and wake-ups (E26, E27)


def test_results_are_gathered_while_a_write_is_under_way_and_only_then():
    async def main():
        store = Gated("finish")
        tasks = Tasks(store, concurrency=10)
        first, go = asyncio.Event(), asyncio.Event()

        @tasks.handler("job")
        async def job(payload):
            if payload:
                await go.wait()
            else:
                first.set()

        await tasks.enqueue_many([{"name": "job", "payload": number} for number in range(10)])
        await tasks.start()
        await store.entered.wait()
        assert store.batches == [1]  # written at once, though nine more were on their way
        go.set()
        await until(lambda: not tasks._engine().worker.running)
        store.gate.set()
        await tasks.stop()
        assert store.batches == [1, 9]

    run(main())


def test_an_idle_worker_asks_its_store_for_nothing_between_the_polls():
    async def main():
        calls = []

        class Counting(MemoryStore):
            async def claim(self, *args, **options):
                calls.append("claim")
                return await super().claim(*args, **options)

            async def expired(self, *args, **options):
                calls.append("expired")
                return await super().expired(*args, **options)

            async def due_schedules(self, *args, **options):
                calls.append("due_schedules")
                return await super().due_schedules(*args, **options)

        clock = ManualClock()
        tasks = Tasks(Counting(), poll_interval=3600, clock=clock)
        tasks.handle("job", _nothing)
        tasks.every("job", 3600)
        tasks.cron("nightly", "0 3 * * *", "job")
        await tasks.start()
        await until_async(lambda: _done(tasks, 1))
        for _ in range(100):
            await asyncio.sleep(0)
        before = len(calls)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(calls) == before
        await tasks.stop()

    run(main())


async def _done(tasks, number):
    return (await tasks.stats()).done == number


# -- names (E19) and several workers in one process


def test_a_handler_that_is_registered_while_the_worker_runs_gets_the_jobs_that_wait(url):
    async def main():
        tasks = Tasks(url, poll_interval=0.01)
        await tasks.start()  # no name at all
        waiting = await tasks.enqueue("late")
        tasks.handle("early", _nothing)
        await tasks.enqueue("early")
        await until_async(lambda: _done(tasks, 1))
        tasks.handle("late", _nothing)
        await until_async(lambda: _is_done(tasks, waiting))
        await tasks.close()

    run(main())


def test_two_tasks_on_one_store_share_the_work_and_one_may_close(url):
    async def main():
        one = Tasks(url)
        two = Tasks(one.store)
        runs = []
        for tasks in (one, two):

            @tasks.handler("job")
            async def job(payload):
                runs.append(payload)

        await one.start()
        await two.start()
        await one.enqueue_many([{"name": "job", "payload": number} for number in range(300)])
        await until_async(lambda: _done(two, 300))
        await one.close()
        await two.enqueue("job", 300)
        await until(lambda: len(runs) == 301)
        await two.close()
        assert sorted(runs) == list(range(301))

    run(main())


# -- intervals (T1)


def test_an_interval_goes_on_from_the_end_of_a_run_wherever_it_ran(url):
    """A process that has the handler and not the interval, such as one of the old release, ends the run as any other."""

    async def main():
        clock = ManualClock()
        runs = []
        registering = Tasks(url, clock=clock)
        other = Tasks(registering.store, clock=clock)
        for tasks in (registering, other):
            tasks.handle("report", runs.append)
        registering.every("report", 60, "payload")
        intervals = registering._engine().intervals
        for _ in range(3):
            await intervals.run_once()
            assert await other.drain() == 1
            [copy] = await other.list(states=["pending"])
            assert (copy.run_at, copy.payload) == (clock.now() + timedelta(seconds=60), "payload")
            await intervals.run_once()
            assert await other.drain() == 0
            clock.advance(60)
        assert runs == ["payload"] * 3
        await registering.close()

    run(main())


def test_an_interval_goes_on_after_a_run_whose_worker_died_whoever_takes_it_back(url):
    """The last attempt ends, dead, in the sweep of a worker that does not know the name; the next copy comes with it (E21)."""

    async def main():
        clock = ManualClock()
        registering = Tasks(url, clock=clock, max_attempts=1)
        sweeping = Tasks(registering.store, clock=clock)
        registering.handle("report", _nothing)
        registering.every("report", 300, "payload")
        await registering._engine().intervals.run_once()
        claimed = await registering.store.claim(
            "token", [Demand(1, names={"report": 1})], worker="dies", lease=60, now=clock.now()
        )
        clock.advance(61)
        assert await sweeping.run_once() == 0
        assert (await sweeping.get(claimed.jobs[0].id)).last_error == "visibility timeout exceeded"
        [copy] = await sweeping.list(states=["pending"])
        assert (copy.name, copy.payload, copy.run_at) == ("report", "payload", clock.now() + timedelta(seconds=300))
        await registering.close()

    run(main())


def test_an_interval_that_cannot_be_looked_up_costs_the_run_nothing(caplog):
    class Failing(MemoryStore):
        async def intervals(self, schedules):
            raise StoreUnavailable("away")

    async def main():
        store = Failing()
        registering, other = Tasks(store), Tasks(store)
        for tasks in (registering, other):
            tasks.handle("report", _nothing)
        registering.every("report", 60)
        await registering._engine().intervals.run_once()
        assert await other.drain() == 1
        assert (await other.stats()).done == 1

    run(main())
    assert "the intervals every:report could not be read: away" in caplog.text


# -- the blocking twins


def test_the_first_uses_from_many_threads_share_one_loop():
    for _ in range(20):
        tasks = Tasks("memory:")
        together = threading.Barrier(16)
        made = []

        def enqueue(tasks=tasks, together=together, made=made):
            together.wait()
            made.append(tasks.sync.enqueue("job").created)

        threads = [threading.Thread(target=enqueue) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [True] * 16
        assert tasks.sync.stats().pending == 16
        assert len(tasks._engines) == 1
        tasks.sync.close()


FORKING = """
import os, threading
from treadle import Tasks

tasks = Tasks("memory:")
tasks.sync.enqueue("job")
if os.fork() == 0:
    made = []
    threads = [threading.Thread(target=lambda: made.append(tasks.sync.enqueue("job").created)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0 if made == [True] * 8 and threading.active_count() == 2 else 1)
print(os.waitstatus_to_exitcode(os.wait()[1]), tasks.sync.stats().pending)
"""


def test_a_child_of_a_fork_has_a_loop_of_its_own():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ["0", "1"]


def test_closing_the_twins_under_way_leaves_nobody_waiting():
    tasks = Tasks(Gated("claim"))
    tasks.handle("job", _nothing)
    ended = []

    def drain():
        try:
            tasks.sync.drain()
        except BaseException as error:
            ended.append(repr(error))

    thread = threading.Thread(target=drain)
    thread.start()
    while not tasks.store.entered.is_set():
        threading.Event().wait(0.001)
    tasks.sync._portal.close()
    thread.join(20)
    why = "tasks.sync was closed by another thread during this call; whether it was carried out is not known"
    assert ended == [f"RuntimeError({why!r})"]


def test_calls_of_twins_that_are_closed_over_and_over_all_come_to_an_end():
    tasks = Tasks("memory:")
    over, ended = threading.Event(), []

    def call():
        while not over.is_set():
            try:
                tasks.sync.stats()
            except RuntimeError as error:
                assert "closed by another thread" in str(error)
        ended.append(True)

    threads = [threading.Thread(target=call, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        tasks.sync._portal.close()
    over.set()
    for thread in threads:
        thread.join(20)
    tasks.sync.close()
    assert ended == [True] * 3


# -- clocks


def test_a_clock_that_tells_naive_times_is_refused_where_it_is_given():
    class Naive:
        def now(self):
            return datetime(2026, 1, 1)

    class Aware:
        def now(self):
            return datetime(2026, 1, 1, tzinfo=UTC)

    Tasks("memory:", clock=Aware())
    with pytest.raises(InvalidArgument, match=r"what the clock's now\(\) answers is a naive datetime"):
        Tasks("memory:", clock=Naive())
