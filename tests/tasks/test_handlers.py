"""Handlers: what they take, what they may raise, and what a registration refuses (E11 to E15)."""

import asyncio
import contextvars
import functools
import socket
import threading
from dataclasses import dataclass
from typing import TypedDict

import msgspec
import pydantic
import pytest

from treadle import Context, Exponential, Fixed, GiveUp, InvalidArgument, Retry, Snooze, Tasks

pytestmark = pytest.mark.timeout(60)


def run(main):
    return asyncio.run(asyncio.wait_for(main, 30))


def tasks_with(function, *, attempts=1, **options) -> Tasks:
    tasks = Tasks("memory:")
    tasks.handle("job", function, max_attempts=attempts, **options)
    return tasks


async def outcome(tasks, payload=None):
    """Enqueue one job, drain, and give the job back as it then stands."""
    enqueued = await tasks.enqueue("job", payload)
    await tasks.drain()
    return await tasks.get(enqueued.id)


def test_async_and_plain_handlers_run_with_payload_or_payload_and_context():
    seen = []

    async def one(payload):
        seen.append(("async", payload))

    async def two(payload, ctx):
        seen.append(("async ctx", ctx.job.name, ctx.attempt, payload))

    def three(payload):
        seen.append(("plain", threading.current_thread() is threading.main_thread(), payload))

    def four(payload, ctx: Context):
        seen.append(("plain ctx", ctx.attempt))

    async def main():
        for function in (one, two, three, four):
            assert (await outcome(tasks_with(function), {"a": 1})).state == "done"

    run(main())
    assert seen == [("async", {"a": 1}), ("async ctx", "job", 1, {"a": 1}), ("plain", False, {"a": 1}), ("plain ctx", 1)]


def test_a_callable_object_a_partial_and_a_bound_method_are_handlers():
    seen = []

    class Sender:
        async def __call__(self, payload):
            seen.append("object")

        async def send(self, payload):
            seen.append("method")

    async def prefixed(prefix, payload):
        seen.append(prefix)

    async def main():
        for function in (Sender(), Sender().send, functools.partial(prefixed, "partial")):
            assert (await outcome(tasks_with(function))).state == "done"

    run(main())
    assert seen == ["object", "method", "partial"]


@pytest.mark.parametrize(
    "function",
    [lambda: None, lambda a, b, c: None, lambda a, *, needed: None, "text", None],
    ids=["no parameter", "three", "a needed keyword", "text", "none"],
)
def test_a_function_that_cannot_be_a_handler_is_refused_at_registration(function):
    with pytest.raises(InvalidArgument, match="handler 'job' must"):
        Tasks("memory:").handle("job", function)


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": True},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"retry": 3},
        {"queue": "functions"},
    ],
)
def test_options_of_a_handler_are_checked(options):
    with pytest.raises(InvalidArgument):
        Tasks("memory:").handle("job", lambda payload: None, **options)


class WithSocket(Exception):
    pass


class TwoArguments(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


RAISED = {
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "WithSocket": lambda: WithSocket(socket),
    "Unprintable": Unprintable,
    "TwoArguments": lambda: TwoArguments("a", "b"),
    "ValueError": ValueError,
    "ExceptionGroup": lambda: ExceptionGroup("three", [ValueError(), KeyError(), OSError()]),
    "BaseExceptionGroup": lambda: BaseExceptionGroup("two", [SystemExit(), KeyboardInterrupt()]),
}


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_whatever_a_handler_raises_fails_its_attempt_and_the_worker_goes_on(name, kind):
    async def raising(payload):
        if payload == "bad":
            raise RAISED[name]()

    def plain(payload):
        if payload == "bad":
            raise RAISED[name]()

    async def main():
        tasks = tasks_with(raising if kind == "async" else plain)
        bad = await outcome(tasks, "bad")
        assert bad.state == "dead"
        assert bad.last_error.startswith(name)
        assert [failure.error for failure in bad.failures] == [bad.last_error]
        assert (await outcome(tasks, "good")).state == "done"

    run(main())


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_stop_iteration_fails_the_attempt(kind):
    async def raising(payload):
        raise StopIteration

    def plain(payload):
        raise StopIteration

    async def main():
        job = await outcome(tasks_with(raising if kind == "async" else plain))
        assert job.state == "dead"
        assert "StopIteration" in job.last_error

    run(main())


def test_cancellation_that_a_handler_causes_itself_is_its_own_failure():
    """Scenario 86: three jobs at once; two fail by a cancellation of their own, the third is done, the worker claims on."""
    third_may_end = asyncio.Event()

    async def handler(payload, ctx):
        if payload == "raise":
            raise asyncio.CancelledError
        if payload == "inner":
            inner = asyncio.create_task(asyncio.Event().wait())
            inner.cancel()
            await inner
        if payload == "self":
            asyncio.current_task().cancel()
            await asyncio.Event().wait()
        if payload == "third":
            await third_may_end.wait()

    async def main():
        tasks = Tasks("memory:", concurrency=4, retry=Fixed(3600))
        tasks.handle("job", handler)
        ids = {payload: (await tasks.enqueue("job", payload)).id for payload in ("raise", "inner", "self", "third")}
        draining = asyncio.create_task(tasks.drain())
        while sum(job.attempts == 1 and job.state == "pending" for job in await tasks.list()) < 3:
            await asyncio.sleep(0)
        third_may_end.set()
        await draining
        for payload in ("raise", "inner", "self"):
            job = await tasks.get(ids[payload])
            assert (job.state, job.attempts, job.last_error) == ("pending", 1, "CancelledError")
        assert (await tasks.get(ids["third"])).state == "done"
        assert (await outcome(tasks, "more")).state == "done"

    run(main())


def test_returned_values_are_ignored():
    async def handler(payload):
        return object()

    async def main():
        assert (await outcome(tasks_with(handler))).state == "done"

    run(main())


def test_a_plain_handler_that_returns_a_coroutine_fails_with_the_remedy():
    async def real(payload):
        pass

    async def main():
        job = await outcome(tasks_with(lambda payload: real(payload)))
        assert job.last_error == "TypeError: the handler returned an awaitable; declare it with async def"

    run(main())


def test_retry_snooze_and_give_up():
    async def handler(payload, ctx):
        if ctx.attempt == 1 and payload == "retry":
            raise Retry(delay=0)
        if payload == "snooze" and not slept:
            slept.append(ctx.attempt)
            raise Snooze(delay=0)
        if payload == "give up":
            raise GiveUp("no such user")

    slept: list[int] = []

    async def main():
        tasks = tasks_with(handler, attempts=3)
        retried = await outcome(tasks, "retry")
        assert (retried.state, retried.attempts, len(retried.failures)) == ("done", 2, 1)
        snoozed = await outcome(tasks, "snooze")
        assert (snoozed.state, snoozed.attempts, snoozed.failures) == ("done", 1, ())
        given_up = await outcome(tasks, "give up")
        assert (given_up.state, given_up.attempts, given_up.last_error) == ("dead", 1, "GiveUp: no such user")

    run(main())


@pytest.mark.parametrize("signal", [Retry, Snooze])
@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), "soon"])
def test_a_signal_with_a_delay_that_is_none_is_refused_where_it_is_raised(signal, delay):
    with pytest.raises(InvalidArgument):
        signal(delay=delay)


def test_a_retry_function_that_fails_does_not_lose_the_job():
    def broken(attempt):
        raise ZeroDivisionError

    async def main():
        tasks = Tasks("memory:", retry=Exponential(5, 5))

        @tasks.handler("job", retry=broken)
        async def handler(payload):
            raise ValueError("no")

        job = await outcome(tasks)
        assert (job.state, job.last_error) == ("pending", "ValueError: no")
        assert (job.run_at - job.failures[0].ended_at).total_seconds() == 5

    run(main())


def test_a_handlers_own_policy_goes_before_the_workers():
    async def main():
        tasks = Tasks("memory:", retry=Fixed(100))

        @tasks.handler("job", retry=Fixed(7), max_attempts=2)
        async def handler(payload):
            raise ValueError

        job = await outcome(tasks)
        assert job.max_attempts == 2
        assert (job.run_at - job.failures[0].ended_at).total_seconds() == 7

    run(main())


def test_max_attempts_of_the_enqueue_goes_before_the_handlers_and_the_default_is_5():
    async def main():
        tasks = Tasks("memory:", retry=Fixed(0))

        @tasks.handler("job")
        async def handler(payload):
            raise ValueError

        assert (await outcome(tasks)).attempts == 5
        enqueued = await tasks.enqueue("job", max_attempts=2)
        assert enqueued.job.max_attempts == 2
        await tasks.drain()
        assert (await tasks.get(enqueued.id)).attempts == 2

    run(main())


# -- typed payloads


@dataclass
class Mail:
    to: str
    copies: int = 1


class MailDict(TypedDict):
    to: str


class MailStruct(msgspec.Struct):
    to: str


class MailModel(pydantic.BaseModel):
    to: str
    tags: list[str] = []


@pytest.mark.parametrize(
    "kind, made",
    [(Mail, Mail("ada")), (MailDict, {"to": "ada"}), (MailStruct, MailStruct("ada")), (MailModel, MailModel(to="ada"))],
)
def test_a_payload_is_converted_to_the_annotated_type_and_back_at_a_typed_enqueue(kind, made):
    seen = []

    async def handler(payload):
        seen.append(payload)

    handler.__annotations__["payload"] = kind

    async def main():
        tasks = Tasks("memory:")
        registered = tasks.handle("job", handler)
        enqueued = await registered.enqueue(made)
        assert enqueued.job.payload["to"] == "ada"
        await tasks.enqueue("job", {"to": "ada"})
        await tasks.drain()

    run(main())
    assert seen == [made, made]
    assert all(isinstance(one, dict if kind is MailDict else kind) for one in seen)


@pytest.mark.parametrize("kind", [Mail, MailDict, MailStruct, MailModel])
def test_a_payload_that_does_not_fit_fails_the_attempt_and_names_the_field_not_the_value(kind):
    async def handler(payload):
        raise AssertionError("must not be called")

    handler.__annotations__["payload"] = kind

    async def main():
        job = await outcome(tasks_with(handler), {"to": ["s3cret"]})
        assert job.state == "dead"
        assert job.last_error.startswith("InvalidPayload: the payload does not fit " + kind.__name__)
        assert "to" in job.last_error
        assert "s3cret" not in job.last_error
        assert "\n" not in job.last_error

    run(main())


def test_annotations_of_lists_and_unions_of_models_are_converted_too():
    seen = []

    async def handler(payload: list[Mail] | None):
        seen.append(payload)

    async def main():
        tasks = tasks_with(handler)
        await outcome(tasks, [{"to": "a"}, {"to": "b", "copies": 2}])
        await outcome(tasks, None)

    run(main())
    assert seen == [[Mail("a"), Mail("b", 2)], None]


def test_the_decorated_function_stays_callable():
    tasks = Tasks("memory:")

    @tasks.handler("job")
    async def handler(payload: dict, ctx: Context | None = None) -> str:
        """Doc."""
        return payload["x"]

    assert asyncio.run(handler({"x": "y"})) == "y"
    assert (handler.name, handler.__doc__, handler.__name__) == ("job", "Doc.", "handler")


def test_what_a_callable_object_keeps_as_its_own_is_not_the_handlers():
    seen = []

    class Mailer:
        """Sends mail."""

        def __init__(self):
            self.name, self.function, self.enqueue, self._tasks, self._codec = "smtp", None, None, None, None

        async def __call__(self, payload):
            seen.append(payload)

    async def main():
        tasks = Tasks("memory:")
        mailer = tasks.handle("mail", Mailer())
        assert (mailer.name, mailer.__doc__) == ("mail", "Sends mail.")
        assert (await mailer.enqueue(1)).job.name == "mail"
        await tasks.drain()
        await mailer(2)

    run(main())
    assert seen == [1, 2]


def test_each_job_has_a_context_of_variables_of_its_own():
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="clean")
    seen = []

    async def handler(payload):
        seen.append(variable.get())
        variable.set("dirty")

    def plain(payload):
        seen.append(variable.get())
        variable.set("dirty")

    async def main():
        for function in (handler, plain):
            tasks = tasks_with(function)
            await tasks.enqueue_many([{"name": "job"}] * 3)
            await tasks.drain()

    run(main())
    assert seen == ["clean"] * 6


def test_a_handler_can_enqueue_more_from_both_kinds():
    async def chained(payload, ctx):
        await ctx.tasks.enqueue("plain", payload)

    def plain(payload, ctx):
        ctx.tasks.sync.enqueue("last", payload)

    seen = []

    async def main():
        tasks = Tasks("memory:")
        tasks.handle("job", chained)
        tasks.handle("plain", plain)
        tasks.handle("last", lambda payload: seen.append(payload))
        await outcome(tasks, {"n": 1})
        tasks.sync.close()

    run(main())
    assert seen == [{"n": 1}]


def test_the_log_of_the_context_carries_the_job(caplog):
    async def handler(payload, ctx):
        ctx.log.warning("hello")

    async def main():
        return await outcome(tasks_with(handler))

    job = run(main())
    record = next(record for record in caplog.records if record.message == "hello")
    assert (record.job_id, record.job_name, record.attempt) == (job.id, "job", 1)
