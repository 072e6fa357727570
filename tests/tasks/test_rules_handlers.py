"""Handlers that are odd, and failures of what decides about failures: no job is lost, no slot is held (E11 to E16, E23)."""

import asyncio
import functools
import gc
import logging
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import pydantic
import pytest

from treadle import Fixed, GiveUp, InvalidArgument, Retry, Snooze, Tasks
from treadle.core.transitions import error_text
from treadle.testing import ManualClock

pytestmark = pytest.mark.timeout(60)


def run(main):
    return asyncio.run(asyncio.wait_for(main, 30))


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/jobs.db"


async def outcome(tasks, payload=None):
    enqueued = await tasks.enqueue("job", payload)
    await tasks.drain()
    return await tasks.get(enqueued.id)


# -- what cannot be a handler (E11)


def generator(payload):
    yield payload


async def async_generator(payload):
    yield payload


class Yielding:
    def __call__(self, payload):
        yield payload


class Asynchronous:
    def __init__(self, payload):
        raise AssertionError("must not be called")

    async def __call__(self, payload):
        raise AssertionError("must not be called")


@pytest.mark.parametrize("function", [generator, async_generator, Yielding(), functools.partial(generator)])
def test_a_generator_is_refused_since_calling_it_runs_nothing(function):
    with pytest.raises(InvalidArgument, match="'job' must not contain yield"):
        Tasks("memory:").handle("job", function)


def test_a_class_is_refused_since_an_object_of_it_was_meant():
    with pytest.raises(InvalidArgument, match="'job' must be a function or an object, not the class Asynchronous itself"):
        Tasks("memory:").handle("job", Asynchronous)


def test_the_decorator_without_its_parentheses_is_refused_and_does_not_register_in_silence():
    tasks = Tasks("memory:")
    with pytest.raises(InvalidArgument, match="the job name must be text, not function"):

        @tasks.handler
        async def job(payload):
            pass


def test_a_plain_handler_that_returns_a_generator_has_done_nothing_and_fails():
    async def main():
        tasks = Tasks("memory:", max_attempts=1)
        tasks.handle("job", lambda payload: generator(payload))
        assert (await outcome(tasks)).last_error == (
            "TypeError: the handler returned a generator, of which nothing has run; let it do its work and return"
        )

    run(main())


class Proxy:
    """As those of web frameworks, which raise outside a request."""

    @property
    def __class__(self):
        raise RuntimeError("outside of a request")


def test_a_returned_value_is_not_even_looked_at():
    async def main():
        tasks = Tasks("memory:", max_attempts=1)
        tasks.handle("job", lambda payload: Proxy())
        for _ in range(2):  # the second one needs the thread of the first
            assert (await outcome(tasks)).state == "done"

    run(main())


def test_a_payload_that_its_type_cannot_turn_into_json_is_an_invalid_argument():
    @dataclass
    class Mail:
        to: object

    class Model(pydantic.BaseModel):
        to: object

    async def main():
        tasks = Tasks("memory:")
        for kind in (Mail, Model):

            async def handler(payload):
                pass

            handler.__annotations__["payload"] = kind
            registered = tasks.handle("job", handler)
            with pytest.raises(InvalidArgument, match="the payload of 'job' cannot be turned into JSON"):
                await registered.enqueue(kind(to=object()))
        assert await tasks.list() == []

    run(main())


# -- retry policies that fail (E16)


class Answering:
    def __init__(self, answer):
        self.answer = answer

    def delay(self, attempt, random):
        return self.answer


def broken(attempt):
    raise ZeroDivisionError


@pytest.mark.parametrize(
    "policy",
    [broken, lambda attempt: -1, Answering(float("nan")), Answering(float("inf")), Answering(-1), Answering("soon")],
    ids=["raises", "negative", "nan", "infinite", "a policy's negative", "text"],
)
def test_a_worker_whose_retry_policy_fails_falls_back_to_the_librarys_and_loses_no_job(policy):
    async def main():
        tasks = Tasks("memory:", retry=policy)
        good = []

        @tasks.handler("job")
        async def job(payload):
            if payload == "bad":
                raise ValueError("no")
            good.append(payload)

        bad = await outcome(tasks, "bad")
        assert (bad.state, bad.last_error) == ("pending", "ValueError: no")
        assert (bad.run_at - bad.failures[0].ended_at).total_seconds() == 1
        assert (await outcome(tasks, "good")).state == "done"
        assert tasks._engine().worker.running == []

    run(main())


def test_a_policy_may_answer_a_timedelta_and_its_class_is_no_policy():
    async def main():
        tasks = Tasks("memory:", retry=Answering(timedelta(seconds=90)))

        @tasks.handler("job")
        async def job(payload):
            raise ValueError

        bad = await outcome(tasks)
        assert (bad.run_at - bad.failures[0].ended_at).total_seconds() == 90

    run(main())
    with pytest.raises(InvalidArgument, match="retry must be a policy such as"):
        Tasks("memory:", retry=Fixed)


# -- signals and errors (E13, E14, E15)


def test_retry_takes_a_timedelta_and_snooze_at_the_last_attempt_spends_none(url):
    async def main():
        clock = ManualClock()
        tasks = Tasks(url, clock=clock)
        seen = []

        @tasks.handler("job", max_attempts=2)
        def handler(payload, ctx):
            seen.append(ctx.attempt)
            if len(seen) == 1:
                raise Retry(timedelta(hours=2))
            if len(seen) == 2:
                raise Snooze(timedelta(days=1))
            raise GiveUp("enough")

        job = await outcome(tasks)
        assert (job.state, job.attempts, job.run_at - clock.now()) == ("pending", 1, timedelta(hours=2))
        clock.advance(7200)
        await tasks.drain()
        job = await tasks.get(job.id)
        assert (job.state, job.attempts, job.interruptions, job.run_at - clock.now()) == ("pending", 1, 0, timedelta(days=1))
        clock.advance(86_400)
        await tasks.drain()
        assert seen == [1, 2, 2]
        job = await tasks.get(job.id)
        assert (job.state, job.last_error, [one.attempt for one in job.failures]) == ("dead", "GiveUp: enough", [1, 2])
        await tasks.close()

    run(main())


class Unfinished(Snooze):
    def __init__(self):
        pass  # without the delay that it has to set


class Exiting(Exception):
    def __str__(self):
        raise SystemExit


@pytest.mark.parametrize("error, told", [(Unfinished, "Unfinished"), (Exiting, "Exiting")])
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_an_error_that_cannot_be_read_is_a_failure_like_any_other(error, told, kind):
    def plain(payload):
        raise error

    async def raising(payload):
        raise error

    async def main():
        tasks = Tasks("memory:", max_attempts=1)
        tasks.handle("job", raising if kind == "async" else plain)
        job = await outcome(tasks)
        assert (job.state, job.last_error) == ("dead", told)

    assert error_text(error()) == told
    run(main())


def test_a_log_filter_that_raises_costs_no_job_its_end():
    class Raising(logging.Filter):
        def filter(self, record):
            raise ZeroDivisionError

    async def main():
        logger = logging.getLogger("treadle.with-a-broken-filter")
        logger.addFilter(Raising())
        tasks = Tasks("memory:", max_attempts=1, logger=logger)

        @tasks.handler("job")
        async def job(payload):
            raise ValueError("no")

        assert (await outcome(tasks)).last_error == "ValueError: no"

    run(main())


def test_an_error_is_not_kept_alive_by_the_attempt_that_it_ended():
    class Large:
        pass

    kept = []

    async def main():
        quiet = logging.getLogger("treadle.quiet")
        quiet.setLevel(logging.CRITICAL)  # others keep what they log
        tasks = Tasks("memory:", max_attempts=1, logger=quiet)

        @tasks.handler("job")
        async def job(payload):
            large = Large()
            kept.append(weakref.ref(large))
            raise ValueError(large)

        gc.collect()
        gc.disable()
        try:
            await outcome(tasks)
            assert [one() for one in kept] == [None]
        finally:
            gc.enable()

    run(main())


def test_a_thread_that_the_system_refuses_fails_the_attempt_and_takes_no_place(monkeypatch):
    async def main():
        tasks = Tasks("memory:", max_attempts=1)
        tasks.handle("job", lambda payload: None)
        enqueued = await tasks.enqueue("job")
        start = threading.Thread.start

        def refuse(thread):
            if thread.name.startswith("treadle-handler"):
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse)
        await tasks.drain()
        monkeypatch.undo()
        assert (await tasks.get(enqueued.id)).last_error == "RuntimeError: can't start new thread"
        assert tasks._engine().worker._attempts.executor.threads_taken == 0
        assert (await outcome(tasks)).state == "done"

    run(main())


# -- timeouts (E23)


def test_a_handler_that_swallows_its_cancellation_and_returns_has_failed_at_its_timeout():
    async def main():
        tasks = Tasks("memory:", max_attempts=1)

        @tasks.handler("job", timeout=0.02)
        async def job(payload):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return

        assert (await outcome(tasks)).last_error == "TimeoutError: ran longer than its timeout of 0.02 s"

    run(main())


def test_a_handler_that_holds_the_loop_up_past_its_timeout_has_failed():
    async def main():
        tasks = Tasks("memory:", max_attempts=1)

        @tasks.handler("job", timeout=0.02)
        async def job(payload):
            end = time.monotonic() + 0.05
            while time.monotonic() < end:
                pass

        assert (await outcome(tasks)).state == "dead"

    run(main())


def test_a_plain_handler_that_raises_after_its_timeout_changes_nothing():
    async def main():
        tasks = Tasks("memory:", max_attempts=2, retry=Fixed(3600))
        ended = threading.Event()

        @tasks.handler("job", timeout=0.02)
        def handler(payload, ctx):
            try:
                ctx.aborted.wait(20)
                raise GiveUp("too late")
            finally:
                ended.set()

        job = await outcome(tasks)
        assert (job.state, job.attempts, len(job.failures)) == ("pending", 1, 1)
        assert await asyncio.to_thread(ended.wait, 20)
        await tasks.drain()
        assert await tasks.get(job.id) == job

    run(main())


def test_an_abandoned_attempt_is_told_once_and_its_late_error_not_at_all(caplog):
    async def main():
        tasks = Tasks("memory:", max_attempts=1)
        release, ended = asyncio.Event(), asyncio.Event()

        @tasks.handler("job", timeout=0.02)
        async def handler(payload):
            try:
                while not release.is_set():
                    with suppress(asyncio.CancelledError):
                        await release.wait()
                raise ValueError("late")
            finally:
                asyncio.get_running_loop().call_soon(ended.set)

        job = await outcome(tasks)
        assert job.state == "dead"
        release.set()
        await ended.wait()
        await asyncio.sleep(0)
        assert await tasks.get(job.id) == job

    run(main())
    told = [record.getMessage() for record in caplog.records]
    assert sum("is dead at attempt 1 of 1" in line for line in told) == 1
    assert not any("late" in line for line in told)


# -- the context beyond its attempt (E12)


def test_a_context_that_outlives_its_attempt_holds_nothing():
    kept = []
    tasks = Tasks("memory:")

    @tasks.handler("job")
    async def job(payload, ctx):
        kept.append(ctx)

    async def main():
        await outcome(tasks)
        [ctx] = kept
        assert not await ctx.extend_lease(10)
        assert not await asyncio.to_thread(ctx.extend_lease_sync, 10)
        assert (ctx.attempt, ctx.job.name, ctx.aborted.is_set()) == (1, "job", False)
        return ctx

    ctx = run(main())
    answers = []
    thread = threading.Thread(target=lambda: answers.append(ctx.extend_lease_sync(10)))  # its loop has closed
    thread.start()
    thread.join()
    assert answers == [False]


def test_the_blocking_way_to_extend_a_lease_is_refused_where_it_would_wait_for_itself():
    async def main():
        tasks = Tasks("memory:", max_attempts=1)

        @tasks.handler("job")
        async def job(payload, ctx):
            ctx.extend_lease_sync(10)

        assert (await outcome(tasks)).last_error == (
            "RuntimeError: a blocking call from within the worker's loop; await ctx.extend_lease() there"
        )

    run(main())


@pytest.mark.parametrize("call", ["drain", "run_once"])
def test_a_handler_that_waits_for_its_own_worker_is_refused_and_not_a_deadlock(call):
    async def main():
        tasks = Tasks("memory:", max_attempts=1, concurrency=2)

        @tasks.handler("job")
        async def job(payload, ctx):
            await getattr(ctx.tasks, call)()

        assert (await outcome(tasks)).last_error == (
            "RuntimeError: a handler must not wait for its own worker; enqueue, and let the worker run it"
        )

    run(main())


@pytest.mark.parametrize("how", ["stop", "close"])
def test_a_handler_cannot_wait_for_its_worker_to_stop(how):
    """It would wait out its own grace, and then be cancelled in the middle of the stop."""

    async def main():
        tasks = Tasks("memory:", grace=3600)

        @tasks.handler("async")
        async def handler(payload, ctx):
            await getattr(ctx.tasks, how)()

        @tasks.handler("other")
        async def other(payload, ctx):
            beside.append(asyncio.create_task(getattr(ctx.tasks, how)()))

        beside = []
        enqueued = await tasks.enqueue("async", max_attempts=1)
        await tasks.start()
        async with asyncio.timeout(10):
            while (await tasks.get(enqueued.id)).state != "dead":
                await asyncio.sleep(0)
            assert (await tasks.get(enqueued.id)).last_error == (
                "RuntimeError: a handler must not wait for its own worker; let a task or a thread of its own stop it"
            )
            enqueued = await tasks.enqueue("other")
            while not beside:
                await asyncio.sleep(0)
            await beside[0]
        assert (await tasks.get(enqueued.id)).state == "done"

    run(main())


@pytest.mark.parametrize("how", ["stop", "close", "drain", "run_once"])
def test_a_plain_handler_cannot_wait_for_its_worker_where_that_runs_for_the_blocking_twins(how):
    tasks = Tasks("memory:", max_attempts=1, grace=3600)
    ended = threading.Event()

    @tasks.handler("plain")
    def handler(payload, ctx):
        try:
            getattr(ctx.tasks.sync, how)()
        finally:
            ended.set()

    try:
        enqueued = tasks.sync.enqueue("plain")
        tasks.sync.start()
        assert ended.wait(20)
    finally:
        tasks.sync.close()
    error = tasks.sync.get(enqueued.id).last_error
    tasks.sync.close()
    assert error.startswith("RuntimeError: a handler must not wait for its own worker")
