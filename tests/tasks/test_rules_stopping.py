"""What stops, drains and cancellations owe to each other and to the jobs between them (E14, E23, E24, E25)."""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from looping import run, until

from treadle import GiveUp, Retry, Snooze, Tasks
from treadle.engine import service, worker
from treadle.stores.memory import MemoryStore

pytestmark = pytest.mark.timeout(60)


async def turns(number=50):
    for _ in range(number):
        await asyncio.sleep(0)


class Gated(MemoryStore):
    """A store whose claims, results or sweeps are answered only once the gate is open; what they do is done before."""

    def __init__(self, *names):
        super().__init__()
        self.names = names
        self.entered, self.gate = asyncio.Event(), asyncio.Event()
        self.listeners = 0

    async def _through(self, name):
        if name in self.names:
            self.entered.set()
            await self.gate.wait()

    async def claim(self, *args, **options):
        claimed = await super().claim(*args, **options)
        await self._through("claim")
        return claimed

    async def finish(self, *args, **options):
        await self._through("finish")
        return await super().finish(*args, **options)

    async def expired(self, *args, **options):
        await self._through("expired")
        return await super().expired(*args, **options)

    async def listen(self, wake):
        listener = await super().listen(wake)
        self.listeners += 1
        close = listener.close

        async def closed():
            self.listeners -= 1
            await close()

        listener.close = closed
        return listener


# -- what a handler says in the last moments of a stop (E14)


@pytest.mark.parametrize(
    "signal, state, attempts, error",
    [
        (Snooze(0), "pending", 0, None),
        (Retry(delay=0, reason="half of it is done"), "pending", 1, "Retry: half of it is done"),
        (GiveUp("no second try"), "dead", 1, "GiveUp: no second try"),
    ],
)
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_signal_means_during_a_stop_what_it_always_means(kind, signal, state, attempts, error):
    async def main():
        tasks = Tasks("memory:")
        started = threading.Event()

        if kind == "async":

            @tasks.handler("job")
            async def job(payload, ctx):
                started.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    assert ctx.aborted.is_set()
                    raise signal from None
        else:

            @tasks.handler("job")
            def plain(payload, ctx):
                started.set()
                assert ctx.aborted.wait(20)
                raise signal

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        await until(started.is_set)
        await tasks.stop(0)
        job = await tasks.get(enqueued.id)
        assert (job.state, job.attempts, job.last_error, job.interruptions) == (state, attempts, error, 0)

    run(main())


def test_a_handler_that_gives_its_job_back_at_each_stop_is_never_dead_for_it():
    async def main():
        store = MemoryStore()
        for _ in range(6):
            tasks = Tasks(store)
            started = asyncio.Event()

            @tasks.handler("job", max_attempts=1)
            async def job(payload, ctx, started=started):
                started.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    raise Snooze(0) from None

            if not await tasks.list():
                enqueued = await tasks.enqueue("job")
            await tasks.start()
            await started.wait()
            await tasks.stop(0)
        stored = await tasks.get(enqueued.id)
        assert (stored.state, stored.attempts, stored.interruptions) == ("pending", 0, 0)

    run(main())


def test_what_a_stop_finds_begun_a_moment_ago_is_given_back():
    """Before Python 3.12 its task has not made a step yet, and a cancelled one never makes any."""

    async def main():
        store = Gated("claim")
        tasks = Tasks(store)

        @tasks.handler("job")
        async def job(payload):
            await asyncio.Event().wait()

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        await store.entered.wait()
        store.gate.set()
        await asyncio.create_task(tasks.stop(0))  # its turn comes right after that of the claim
        stored = await tasks.get(enqueued.id)
        assert (stored.state, stored.attempts) == ("pending", 0)

    run(main())


# -- stops and drains


def test_a_drain_whose_claim_is_answered_after_the_stop_begins_nothing(monkeypatch):
    monkeypatch.setattr(worker, "PATIENCE", 0.02)

    async def main():
        store = Gated("claim")
        tasks = Tasks(store)
        ran = []

        @tasks.handler("job")
        async def job(payload):
            ran.append(payload)

        enqueued = await tasks.enqueue("job")
        draining = asyncio.create_task(tasks.drain())
        await store.entered.wait()
        await tasks.stop(0)
        store.gate.set()
        assert await draining == 0
        stored = await tasks.get(enqueued.id)
        assert (ran, stored.state, stored.attempts, stored.interruptions) == ([], "pending", 0, 0)

    run(main())


def test_a_stop_waits_for_the_claim_of_a_drain_too():
    async def main():
        store = Gated("claim")
        tasks = Tasks(store)
        tasks.handle("job", lambda payload: None)
        enqueued = await tasks.enqueue("job")
        draining = asyncio.create_task(tasks.drain())
        await store.entered.wait()
        stopping = asyncio.create_task(tasks.stop(20))
        await turns()
        assert not stopping.done()
        store.gate.set()
        await stopping
        assert (await tasks.get(enqueued.id)).state == "pending"
        assert await draining == 0

    run(main())


def test_a_drain_that_is_stopped_returns_when_what_it_began_has_ended():
    async def main():
        tasks = Tasks("memory:", concurrency=2)
        started, go, ended = asyncio.Event(), asyncio.Event(), []

        @tasks.handler("job")
        async def job(payload):
            started.set()
            await go.wait()
            ended.append(payload)

        await tasks.enqueue("job", 1)
        draining = asyncio.create_task(tasks.drain())
        await started.wait()
        stopping = asyncio.create_task(tasks.stop(20))
        await turns()
        assert not draining.done()
        go.set()
        assert await draining == 1
        assert ended == [1]
        await stopping

    run(main())


def test_a_drain_beside_a_started_worker_waits_for_what_that_is_claiming():
    async def main():
        store = Gated("claim")
        tasks = Tasks(store)
        ran = []

        @tasks.handler("job")
        async def job(payload):
            ran.append(payload)

        await tasks.enqueue("job", 1)
        await tasks.start()
        await store.entered.wait()
        draining = asyncio.create_task(tasks.drain())
        await turns()
        assert not draining.done()
        store.gate.set()
        await draining
        assert ran == [1]
        assert (await tasks.stats()).done == 1
        await tasks.stop()

    run(main())


def test_each_of_many_drains_beside_a_started_worker_finds_its_job_done():
    async def main():
        tasks = Tasks("memory:", poll_interval=3600)
        ran = []

        @tasks.handler("job")
        async def job(payload):
            ran.append(payload)

        await tasks.start()
        for number in range(100):
            await tasks.enqueue("job", number)
            await tasks.drain()
            assert ran[-1] == number
        await tasks.stop()

    run(main())


def test_a_worker_that_found_its_slots_taken_by_a_drain_looks_again_when_they_are_given_back():
    async def main():
        store = Gated()
        tasks = Tasks(store, poll_interval=3600)
        done = asyncio.Event()

        @tasks.handler("job")
        async def job(payload):
            done.set()

        await tasks.start()
        await turns()  # until it sleeps
        store.names = ("claim",)
        draining = asyncio.create_task(tasks.run_once())
        await store.entered.wait()
        await tasks.enqueue("job", delay=0.05)  # wakes the worker, which finds no slot
        await turns()
        store.names = ()
        store.gate.set()
        assert await draining == 0  # not due yet
        await asyncio.wait_for(done.wait(), 10)
        await tasks.stop()

    run(main())


@pytest.mark.parametrize("how", ["stop", "fault"])
def test_what_was_claimed_and_cannot_be_begun_is_given_back(how, monkeypatch):
    """The intervals of what was claimed are looked up in between, and a fault there, or a stop, must not spend the attempt."""
    monkeypatch.setattr(worker, "PATIENCE", 0.02)

    async def main():
        tasks = Tasks("memory:")
        tasks.handle("job", lambda payload: None)
        tasks.every("job", 60)
        looking = asyncio.Event()

        async def prepare(jobs):
            looking.set()
            if how == "fault":
                raise ValueError("a fault of ours")
            await asyncio.Event().wait()

        engine = tasks._engine()
        monkeypatch.setattr(engine.intervals, "prepare", prepare)
        await tasks.start()
        await looking.wait()
        await tasks.stop(0)
        [job] = await tasks.list()
        assert (job.state, job.attempts, job.interruptions) == ("pending", 0, 0)

    run(main())


# -- the time that a stop takes (E24)


@pytest.mark.slow
def test_the_grace_is_spent_once_whatever_does_not_answer(monkeypatch):
    monkeypatch.setattr(worker, "PATIENCE", 0.05)

    async def main():
        store = Gated("expired")
        tasks = Tasks(store, concurrency=2)
        started, cut = asyncio.Event(), []
        loop = asyncio.get_running_loop()

        @tasks.handler("job")
        async def job(payload):
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cut.append(loop.time())

        await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        store.names = ("claim", "finish", "expired")
        store.entered.clear()
        tasks._engine().worker.wake()
        await store.entered.wait()
        monkeypatch.setattr(service, "PATIENCE", 0.05)
        began = loop.time()
        await tasks.stop(1.0)
        assert 0.9 < cut[0] - began < 1.9  # not once for the claim, and once more for the job
        assert loop.time() - began < 2.8  # nor once more for what cannot be written

    run(main())


def test_a_stop_needs_no_thread_of_the_loops_executor(tmp_path):
    """Handlers' own `asyncio.to_thread` calls may hold them all, for ever."""

    async def main():
        tasks = Tasks(f"sqlite:{tmp_path}/jobs.db")
        started, release = asyncio.Event(), threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))

        @tasks.handler("job")
        async def job(payload):
            started.set()
            await asyncio.to_thread(release.wait, 40)

        await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        try:
            async with asyncio.timeout(10):
                await tasks.stop(0)
                await tasks.close()
        finally:
            release.set()
        assert [thread.name for thread in threading.enumerate() if thread.name.startswith("treadle sqlite")] == []

    run(main())


# -- cancelled stops


def test_a_stop_that_is_cancelled_has_stopped_all_but_what_runs():
    async def main():
        store = Gated()
        tasks = Tasks(store)
        started, go = asyncio.Event(), asyncio.Event()

        @tasks.handler("job")
        async def job(payload):
            started.set()
            await go.wait()

        first = await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        stopping = asyncio.create_task(tasks.stop(3600))
        await turns()
        second = await tasks.enqueue("job")
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        assert not tasks._engine().started
        assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("treadle-")] == []
        assert store.listeners == 0
        go.set()
        while (await tasks.get(first.id)).state != "done":
            await asyncio.sleep(0)
        assert (await tasks.get(second.id)).state == "pending"
        await tasks.start()
        while (await tasks.get(second.id)).state != "done":
            await asyncio.sleep(0)
        assert store.listeners == 1
        await tasks.stop()
        assert store.listeners == 0

    run(main())


def test_what_runs_on_after_a_cancelled_stop_is_left_to_its_lease_when_the_loop_ends():
    store = MemoryStore()

    async def main():
        tasks = Tasks(store)
        started = asyncio.Event()

        @tasks.handler("job", max_attempts=1)
        async def job(payload):
            started.set()
            await asyncio.Event().wait()

        await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        stopping = asyncio.create_task(tasks.stop(3600))
        await turns()
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)

    run(main())

    async def look():
        return [(job.state, job.attempts, job.last_error) for job in await Tasks(store).list()]

    assert asyncio.run(look()) == [("running", 1, None)]


def test_results_that_a_cancelled_drain_cannot_write_are_told(caplog, monkeypatch):
    monkeypatch.setattr(worker, "PATIENCE", 0.02)

    async def main():
        store = Gated("finish")
        tasks = Tasks(store, concurrency=3)
        tasks.handle("job", lambda payload: None)
        await tasks.enqueue_many([{"name": "job"}] * 3)
        draining = asyncio.create_task(tasks.drain())
        await store.entered.wait()
        await until(lambda: not tasks._engine().worker.running)
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining

    run(main())
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in told] == ["3 result(s) could not be written; the jobs are left to their leases"]


# -- threads (E23)


def test_the_bound_on_threads_holds_with_many_slots(caplog):
    async def main():
        tasks = Tasks("memory:", concurrency=10, poll_interval=0.02)
        release = threading.Event()
        before = set(threading.enumerate())
        most = 0

        @tasks.handler("stuck", timeout=0.02, max_attempts=1)
        def stuck(payload):
            nonlocal most
            held = [one for one in set(threading.enumerate()) - before if one.name.startswith("treadle-handler")]
            most = max(most, len(held))
            release.wait(20)

        await tasks.enqueue_many([{"name": "stuck"}] * 40)
        await tasks.start()
        await until(lambda: "threads are held by plain handlers" in caplog.text)
        release.set()
        while (stats := await tasks.stats()).pending or stats.running:
            await asyncio.sleep(0)
        await tasks.stop()
        assert most == 18

    run(main())
