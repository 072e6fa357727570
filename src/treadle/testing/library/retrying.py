"""Retrying: waits, dead letters, signals, and exceptions of every kind (E13 to E17)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from treadle.core.job import State
from treadle.core.policies.retry import Exponential, Fixed
from treadle.core.signals import GiveUp, Retry, Snooze
from treadle.engine.execution import Context
from treadle.testing.contract import expect
from treadle.testing.library.bench import Bench
from treadle.testing.suite import Group

retrying = Group[Bench]("retrying")


@retrying
async def the_wait_doubles_until_the_job_is_dead(b: Bench) -> None:
    """By default a job is tried five times, after 1, 2, 4 and 8 seconds, and is dead then (E16, E17)."""
    tasks = b.tasks()
    attempts: list[int] = []

    @tasks.handler("job")
    async def handler(payload: object, ctx: Context) -> None:
        attempts.append(ctx.attempt)
        raise ValueError(f"attempt {ctx.attempt}")

    enqueued = await tasks.enqueue("job")
    for number, wait in enumerate((1, 2, 4, 8), 1):
        await tasks.drain()
        job = await b.job(enqueued.id)
        expect.equal((job.state, job.attempts), (State.PENDING, number), f"after failure {number} the job waits")
        expect.equal((job.run_at - b.clock.now()).total_seconds(), float(wait), f"after failure {number} the wait is {wait} s")
        b.clock.advance(wait - 0.001)
        expect.equal(await tasks.drain(), 0, "nothing runs before the wait is over")
        b.clock.advance(0.001)
    await tasks.drain()
    job = await b.job(enqueued.id)
    expect.equal((job.state, job.last_error), (State.DEAD, "ValueError: attempt 5"), "after five attempts the job is dead")
    expect.equal(attempts, [1, 2, 3, 4, 5], "a handler sees its attempt, from 1")
    expect.equal([one.attempt for one in job.failures], [1, 2, 3, 4, 5], "each failure is on record")


@retrying
async def the_wait_is_capped_and_a_policy_is_a_value(b: Bench) -> None:
    """Exponential stops doubling at its cap; Fixed never doubles; a function of the attempt does as it likes (E16)."""
    for policy, waits in (
        (Exponential(10, 25), (10.0, 20.0, 25.0)),
        (Fixed(5), (5.0, 5.0, 5.0)),
        (lambda n: n * 3, (3.0, 6.0, 9.0)),
    ):
        tasks = b.tasks(retry=policy, max_attempts=9)

        @tasks.handler("job")
        async def handler(payload: object) -> None:
            raise ValueError

        enqueued = await tasks.enqueue("job")
        for wait in waits:
            await tasks.drain()
            job = await b.job(enqueued.id)
            expect.equal((job.run_at - b.clock.now()).total_seconds(), wait, f"the next wait of {policy}")
            b.clock.advance(wait)
        await tasks.delete(enqueued.id)


@retrying
async def a_job_that_succeeds_later_is_done(b: Bench) -> None:
    """Success at the third attempt ends the job as done, with two failures on record (E15)."""
    tasks = b.tasks(retry=Fixed(0))

    @tasks.handler("job")
    async def handler(payload: object, ctx: Context) -> None:
        if ctx.attempt < 3:
            raise OSError("not yet")

    enqueued = await tasks.enqueue("job")
    await tasks.drain()
    job = await b.job(enqueued.id)
    expect.equal((job.state, job.attempts, len(job.failures)), (State.DONE, 3, 2), "done at attempt 3, two failures on record")


@retrying
async def a_handlers_own_limit_holds(b: Bench) -> None:
    """max_attempts of the enqueue goes before that of the handler, which goes before the library's (E4)."""
    tasks = b.tasks(retry=Fixed(0))

    @tasks.handler("job", max_attempts=2)
    async def handler(payload: object) -> None:
        raise ValueError

    by_handler = await tasks.enqueue("job")
    by_enqueue = await tasks.enqueue("job", max_attempts=3)
    await tasks.drain()
    expect.equal((await b.job(by_handler.id)).attempts, 2, "the handler's max_attempts holds")
    expect.equal((await b.job(by_enqueue.id)).attempts, 3, "the enqueue's max_attempts goes before it")


@retrying
async def a_signal_ends_the_attempt_as_it_says(b: Bench) -> None:
    """Retry spends the attempt, Snooze does not, GiveUp ends the job (E14)."""
    tasks = b.tasks()
    signals: dict[str, Callable[[], Exception]] = {
        "retry": lambda: Retry(delay=30),
        "snooze": lambda: Snooze(delay=40),
        "give up": lambda: GiveUp("no use"),
    }

    @tasks.handler("job")
    async def handler(payload: str) -> None:
        raise signals[payload]()

    ids = {word: (await tasks.enqueue("job", word)).id for word in signals}
    await tasks.drain()
    again, later, dead = [await b.job(ids[word]) for word in signals]
    now = b.clock.now()
    expect.equal((again.attempts, (again.run_at - now).total_seconds()), (1, 30.0), "Retry spends the attempt and waits")
    expect.equal((later.attempts, (later.run_at - now).total_seconds()), (0, 40.0), "Snooze gives the attempt back and waits")
    expect.equal((dead.state, "no use" in (dead.last_error or "")), (State.DEAD, True), "GiveUp ends the job with its reason")


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class _Two(Exception):
    def __init__(self, one: object, two: object) -> None:
        super().__init__(one, two)


def _exceptions(plug: socket.socket) -> dict[str, Callable[[], BaseException]]:
    """What is raised, by the name of its type."""
    return {
        "OSError": lambda: OSError("with a socket", plug),
        "_Mute": _Mute,
        "_Two": lambda: _Two(1, 2),
        "ValueError": ValueError,
        "ExceptionGroup": lambda: ExceptionGroup("three", [ValueError(1), KeyError(2), OSError(3)]),
        "BaseExceptionGroup": lambda: BaseExceptionGroup("two", [ValueError(1), SystemExit(2)]),
        "SystemExit": lambda: SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt,
        "GeneratorExit": GeneratorExit,
        "StopIteration": StopIteration,
    }


@retrying
async def exceptions_of_every_kind_are_plain_failures(b: Bench) -> None:
    """What cannot be stored, printed or caught as usual fails its attempt, named by its type (scenario 83)."""
    tasks = b.tasks(max_attempts=1)
    plug = socket.socket()
    exceptions = _exceptions(plug)

    @tasks.handler("async")
    async def in_loop(payload: str) -> None:
        raise exceptions[payload]()

    @tasks.handler("plain")
    def in_thread(payload: str) -> None:
        raise exceptions[payload]()

    ids = [(word, (await tasks.enqueue(kind, word)).id) for word in exceptions for kind in ("async", "plain")]
    tasks.handle("good", lambda payload: None)
    good = await tasks.enqueue("good", priority=-1)
    try:
        await tasks.drain()
    finally:
        plug.close()
    for word, job_id in ids:
        job = await b.job(job_id)
        expect.equal(job.state, State.DEAD, f"{word} fails the one attempt of its job")
        expect.that(word in (job.last_error or ""), f"last_error names the type {word}", job.last_error)
    expect.equal((await b.job(good.id)).state, State.DONE, "the worker goes on after all of them")


@retrying
async def a_handlers_own_cancellation_is_its_failure(b: Bench) -> None:
    """A handler that raises CancelledError, or awaits a task that it cancelled, fails alone (scenario 86)."""
    tasks = b.tasks(concurrency=2)
    go = asyncio.Event()

    @tasks.handler("raises")
    async def raises(payload: object) -> None:
        raise asyncio.CancelledError

    @tasks.handler("awaits")
    async def awaits(payload: object) -> None:
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        go.set()
        await task

    @tasks.handler("third")
    async def third(payload: object) -> None:
        await go.wait()

    ids = [(await tasks.enqueue(name)).id for name in ("raises", "third", "awaits")]
    await tasks.drain()
    jobs = [await b.job(id_) for id_ in ids]
    expect.equal(
        [job.state for job in jobs], [State.PENDING, State.DONE, State.PENDING], "the two wait for a retry, the third is done"
    )
    expect.equal([job.attempts for job in jobs], [1, 1, 1], "one attempt is spent by each")


@retrying
async def an_attempt_past_its_timeout_fails(b: Bench) -> None:
    """At its timeout a handler is told, cancelled, and its attempt fails like any other (E23)."""
    tasks = b.tasks()
    told: list[bool] = []

    @tasks.handler("job", timeout=0.02, max_attempts=2, retry=Fixed(0))
    async def handler(payload: object, ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.append(ctx.aborted.is_set())

    enqueued = await tasks.enqueue("job")
    await tasks.drain()
    job = await b.job(enqueued.id)
    expect.equal(
        (job.state, job.attempts, told), (State.DEAD, 2, [True, True]), "each attempt fails at its timeout, and is told so"
    )
    expect.that("timeout" in (job.last_error or ""), "last_error says so", job.last_error)


@retrying
async def a_redriven_job_has_all_its_tries_again(b: Bench) -> None:
    """A dead letter that is retried starts at attempt 1, and has its three tries (scenario 64)."""
    tasks = b.tasks(retry=Fixed(0))
    attempts: list[int] = []

    @tasks.handler("job", max_attempts=3)
    async def handler(payload: object, ctx: Context) -> None:
        attempts.append(ctx.attempt)
        raise ValueError

    enqueued = await tasks.enqueue("job")
    await tasks.drain()
    answer = await tasks.retry(enqueued.id)
    expect.equal(list(answer.revived), [enqueued.id], "retry answers the job that it revived")
    await tasks.drain()
    expect.equal(attempts, [1, 2, 3, 1, 2, 3], "a revived job runs as often as a new one")
    expect.equal((await b.job(enqueued.id)).state, State.DEAD, "and is dead again after that")


@retrying
async def all_dead_letters_are_redriven_at_once(b: Bench) -> None:
    """retry(all_dead=True) sends every dead letter round, and names those dropped for a twin (E17)."""
    tasks = b.tasks(max_attempts=1)
    fail = True

    @tasks.handler("job")
    async def handler(payload: object) -> None:
        if fail:
            raise ValueError

    dead = [(await tasks.enqueue("job", dedupe_key=f"k{number}")).id for number in range(6)]
    await tasks.drain()
    await tasks.enqueue("job", dedupe_key="k3")
    fail = False
    answer = await tasks.retry(all_dead=True)
    expect.equal(list(answer.dropped), [dead[3]], "the dead letter whose key is held is dropped, and named")
    expect.equal(sorted(answer.revived), sorted(set(dead) - {dead[3]}), "all others are revived")
    await tasks.drain()
    expect.equal((await tasks.stats()).done, 6, "each key has run once")
