"""The blocking twins, from scripts, from several threads, and within plain handlers."""

import asyncio
import threading

import pytest

from treadle import Conflict, NotFound, Tasks
from treadle.testing import ManualClock


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/jobs.db"


def test_a_script_can_do_everything_without_an_event_loop(url):
    tasks = Tasks(url, retry=lambda attempt: 0)
    seen = []

    @tasks.handler("job")
    def handler(payload: str) -> None:
        seen.append(payload)
        if payload == "bad":
            raise ValueError("no")

    sync = tasks.sync
    first = sync.enqueue("job", "one", idempotency_key="k")
    assert first.created
    assert not sync.enqueue("job", "two", idempotency_key="k").created
    assert handler.enqueue_sync("three").created
    bad = sync.enqueue_many([{"name": "job", "payload": "bad", "max_attempts": 2}])[0]
    assert sync.stats().pending == 3
    assert sync.drain() == 4
    assert sync.run_once() == 0
    assert sorted(seen) == ["bad", "bad", "one", "three"]
    assert sync.get(bad.id).state == "dead"
    assert len(sync.get(bad.id).failures) == 2
    assert sync.get("unknown") is None
    assert [job.id for job in sync.list(states=["dead"])] == [bad.id]
    assert list(sync.retry(bad.id).revived) == [bad.id]
    assert sync.get(bad.id).attempts == 0
    with pytest.raises(Conflict, match="pending; only dead"):
        sync.retry(bad.id)
    with pytest.raises(NotFound):
        sync.retry("unknown")
    with pytest.raises(NotFound):
        sync.delete("unknown")
    sync.delete(bad.id)
    assert sync.prune(0, dry_run=True).matched == 2
    assert sync.prune(0).deleted == 2
    assert sync.list() == []
    sync.enqueue("later", delay=60)
    assert sync.pending_names() == ["later"]
    sync.close()


def test_start_runs_jobs_in_the_background(url):
    tasks = Tasks(url)
    done = threading.Event()
    tasks.handle("job", lambda payload: done.set())
    tasks.sync.start()
    tasks.sync.enqueue("job")
    assert done.wait(10)
    tasks.sync.stop()
    assert tasks.sync.stats().done == 1
    tasks.sync.close()


def test_threads_may_share_the_twins(url):
    tasks = Tasks(url)

    def enqueue(number):
        for index in range(25):
            tasks.sync.enqueue("job", [number, index])

    threads = [threading.Thread(target=enqueue, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jobs = tasks.sync.list()
    assert sorted(job.payload for job in jobs) == [[n, i] for n in range(8) for i in range(25)]
    tasks.sync.close()
    tasks.sync.close()


def test_a_blocking_call_on_its_own_loop_is_refused_and_not_a_deadlock():
    tasks = Tasks("memory:")
    errors = []

    @tasks.handler("job", max_attempts=1)
    async def handler(payload):
        try:
            tasks.sync.stats()
        except RuntimeError as error:
            errors.append(str(error))

    tasks.sync.enqueue("job")
    tasks.sync.drain()
    assert errors == ["a blocking call from within the loop that would have to run it; await the async twin"]
    tasks.sync.close()


@pytest.mark.parametrize("twin", ["run_once", "drain"])
def test_a_plain_handler_that_would_wait_for_itself_is_refused_and_not_a_deadlock(twin):
    tasks = Tasks("memory:")
    errors = []

    @tasks.handler("job", max_attempts=1)
    def handler(payload, ctx):
        ctx.tasks.sync.enqueue("other")  # waits for no job
        try:
            getattr(ctx.tasks.sync, twin)()
        except RuntimeError as error:
            errors.append(str(error))

    tasks.sync.enqueue("job")
    assert tasks.sync.drain() == 1
    assert errors == ["a handler must not wait for its own worker; enqueue, and let the worker run it"]
    assert tasks.sync.stats().done == 1
    tasks.sync.close()


def test_a_plain_handler_may_wait_for_the_worker_of_another_loop():
    tasks = Tasks("memory:", concurrency=1)
    seen = []

    @tasks.handler("job", max_attempts=1)
    def handler(payload, ctx):
        seen.append(payload)
        if payload == "outer":
            ctx.tasks.sync.enqueue("job", "inner")
            assert ctx.tasks.sync.drain() == 1

    async def main():
        await tasks.enqueue("job", "outer")
        await tasks.drain()
        await asyncio.to_thread(tasks.sync.close)
        assert (await tasks.stats()).done == 2

    asyncio.run(main())
    assert seen == ["outer", "inner"]


def test_the_twins_follow_an_injected_clock(url):
    clock = ManualClock()
    tasks = Tasks(url, clock=clock)
    tasks.handle("job", lambda payload: None)
    enqueued = tasks.sync.enqueue("job", delay=86_400)
    assert enqueued.job.created_at == clock.now()
    assert tasks.sync.drain() == 0
    clock.advance(86_400)
    assert tasks.sync.drain() == 1
    assert tasks.sync.get(enqueued.id).finished_at == clock.now()
    tasks.sync.close()


def test_async_and_blocking_callers_share_one_store(url):
    tasks = Tasks(url)

    async def main():
        await tasks.enqueue("job", 1)
        await asyncio.to_thread(tasks.sync.enqueue, "job", 2)
        jobs = await tasks.list()
        await tasks.close()
        return sorted(job.payload for job in jobs)

    assert asyncio.run(main()) == [1, 2]
    tasks.sync.close()


def test_schedules_have_blocking_twins(url):
    clock = ManualClock()
    tasks = Tasks(url, clock=clock)
    tasks.handle("job", lambda payload: None)
    tasks.cron("nightly", "0 3 * * *", "job", tz="Europe/Berlin")
    assert tasks.sync.drain() == 0
    schedules = tasks.sync.schedules
    assert [one.name for one in schedules.list()] == [one.name for one in schedules.list("night")] == ["nightly"]
    assert schedules.list("x") == []
    assert schedules.pause("nightly").paused
    assert not schedules.resume("nightly").paused
    assert schedules.run_now("nightly").job.schedule == "cron:nightly"
    with pytest.raises(Conflict, match="still pending"):
        schedules.run_now("nightly")
    assert tasks.sync.drain() == 1
    assert schedules.get("nightly").last_at == clock.now()
    schedules.delete("nightly")
    with pytest.raises(NotFound, match="no schedule 'nightly'"):
        schedules.get("nightly")
    tasks.sync.close()
