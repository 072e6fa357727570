"""Running: what is due runs, once, in order, by hand and in the background (E11, E13, E25, E28)."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from treadle.core.errors import InvalidArgument
from treadle.core.job import State
from treadle.core.policies.retry import Fixed
from treadle.engine.execution import Context
from treadle.testing.contract import expect
from treadle.testing.library.bench import Bench
from treadle.testing.suite import Group

running = Group[Bench]("running")


@running
async def the_smallest_program_runs(b: Bench) -> None:
    """Two enqueues under one idempotency key are one job, run once, listed as done (E6, E25)."""
    tasks = b.tasks()
    handled: list[str] = []

    @tasks.handler("welcome-email")
    async def welcome_email(payload: dict[str, str]) -> None:
        handled.append(payload["email"])

    for _ in range(2):
        await tasks.enqueue("welcome-email", {"email": "ada@example.com"}, idempotency_key="welcome:1")
    await tasks.drain()
    expect.equal(handled, ["ada@example.com"], "the job runs once")
    expect.equal(len(await tasks.list(states=["done"])), 1, "the job is listed as done")
    expect.equal(len(await tasks.list(states=["pending"])), 0, "nothing is left pending")


@running
async def a_handler_gets_its_payload_and_its_context(b: Bench) -> None:
    """A handler is called with the payload, and with a context that knows job, attempt and tasks (E12)."""
    tasks = b.tasks()
    seen: list[object] = []

    @tasks.handler("job")
    async def handler(payload: dict[str, int], ctx: Context) -> None:
        seen.append((payload, ctx.job.id, ctx.attempt, ctx.tasks is tasks, ctx.aborted.is_set()))

    enqueued = await tasks.enqueue("job", {"n": 1})
    await tasks.drain()
    expect.equal(seen, [({"n": 1}, enqueued.id, 1, True, False)], "a handler sees payload, job, attempt 1 and tasks")


@running
async def a_plain_function_is_a_handler_too(b: Bench) -> None:
    """A `def` handler runs in a thread, and may enqueue more from there (E11)."""
    tasks = b.tasks()
    threads: list[int] = []
    tasks.handle("job", lambda payload: threads.append(threading.get_ident()))
    enqueued = await tasks.enqueue("job")
    await tasks.drain()
    expect.equal((await b.job(enqueued.id)).state, State.DONE, "a plain function's job is done")
    expect.that(threads not in ([], [threading.get_ident()]), "a plain function runs in another thread", threads)


@running
async def what_a_handler_enqueues_runs_in_the_same_drain(b: Bench) -> None:
    """Drain goes on until nothing is due, jobs enqueued meanwhile among it (E25)."""
    tasks = b.tasks()

    @tasks.handler("count-down")
    async def count_down(payload: int) -> None:
        if payload:
            await tasks.enqueue("count-down", payload - 1)

    await tasks.enqueue("count-down", 5)
    expect.equal(await tasks.drain(), 6, "drain answers how many attempts were run")
    expect.equal((await tasks.stats()).done, 6, "a chain of jobs is drained whole")


@running
async def run_once_runs_each_due_job_once(b: Bench) -> None:
    """A job that fails and is due again at once waits for the next run_once (E25)."""
    tasks = b.tasks(retry=Fixed(0), concurrency=3)
    starts: list[int] = []

    @tasks.handler("job")
    async def handler(payload: int) -> None:
        starts.append(payload)
        raise ValueError

    for number in range(6):
        await tasks.enqueue("job", number)
    expect.equal(await tasks.run_once(), 6, "run_once runs what is due")
    expect.equal(sorted(starts), list(range(6)), "run_once runs each due job once")
    expect.equal({job.attempts for job in await b.jobs()}, {1}, "one attempt of each is spent")


@running
async def one_at_a_time_jobs_run_in_their_order(b: Bench) -> None:
    """With concurrency 1 jobs run by priority, then due time, then age (E28)."""
    tasks = b.tasks()
    seen: list[str] = []

    @tasks.handler("job")
    async def handler(payload: str) -> None:
        seen.append(payload)

    await tasks.enqueue("job", "third")
    await tasks.enqueue("job", "fourth")
    await tasks.enqueue("job", "first", priority=10)
    await tasks.enqueue("job", "last", priority=-10)
    await tasks.enqueue("job", "second", priority=1, run_at=datetime(2020, 1, 1, tzinfo=UTC))
    await tasks.drain()
    expect.equal(seen, ["first", "second", "third", "fourth", "last"], "jobs run in the order of E28")


@running
async def what_is_due_later_waits_and_disturbs_nobody(b: Bench) -> None:
    """Thirty days and the year 9999 wait exactly so long, while other jobs run (scenario 80)."""
    tasks = b.tasks()
    ran: Counter[str] = Counter()

    @tasks.handler("job")
    async def handler(payload: str) -> None:
        ran[payload] += 1

    month = await tasks.enqueue("job", "in thirty days", delay=2_592_000)
    end = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    far = await tasks.enqueue("job", "in the year 9999", run_at=end)
    await tasks.enqueue("job", "now")
    await tasks.drain()
    expect.equal(dict(ran), {"now": 1}, "only what is due runs")
    expect.equal((await b.job(far.id)).run_at, end, "the far due time is exact")
    b.clock.advance(2_592_000 - 0.001)
    await tasks.drain()
    expect.equal(ran["in thirty days"], 0, "thirty days are not over yet")
    b.clock.advance(0.001)
    for _ in range(2):
        await tasks.drain()
    expect.equal(dict(ran), {"now": 1, "in thirty days": 1}, "after thirty days the job runs, once")
    expect.equal((await b.job(month.id)).state, State.DONE, "it is done")


@running
async def a_worker_in_the_background_runs_what_is_enqueued(b: Bench) -> None:
    """Between start and stop what is enqueued runs by itself (E25, E26)."""
    tasks = b.tasks()
    ran = asyncio.Event()

    @tasks.handler("job")
    async def handler(payload: object) -> None:
        ran.set()

    await tasks.start()
    await tasks.start()
    enqueued = await tasks.enqueue("job")
    await b.happens(ran, "a started worker runs a job that is enqueued")
    await tasks.stop()
    await tasks.stop()
    expect.equal((await b.job(enqueued.id)).state, State.DONE, "the job is done when stop has returned")


@running
async def a_moved_clock_makes_a_waiting_job_run(b: Bench) -> None:
    """A started worker follows the clock that it was given, whoever moves it (S2)."""
    tasks = b.tasks(poll_interval=3600.0)
    ran = asyncio.Event()

    @tasks.handler("job")
    async def handler(payload: object) -> None:
        ran.set()

    await tasks.enqueue("job", delay=86_400)
    await tasks.start()
    b.clock.advance(86_400)
    await b.happens(ran, "a job runs when the clock is moved to its due time")
    await tasks.stop()


@running
async def several_workers_run_each_job_once(b: Bench) -> None:
    """Four workers on one store drain 200 jobs; each runs once, and sweeps afterwards change nothing (scenario 54)."""
    workers = [b.tasks(concurrency=5, lease=1.0) for _ in range(4)]
    starts: Counter[int] = Counter()

    async def handler(payload: int) -> None:
        starts[payload] += 1
        await asyncio.sleep(0)

    for tasks in workers:
        tasks.handle("job", handler)
    await workers[0].enqueue_many([{"name": "job", "payload": number} for number in range(200)])
    await asyncio.gather(*(tasks.drain() for tasks in workers))
    expect.equal(starts, Counter(range(200)), "each of 200 jobs runs exactly once over four workers")
    for _ in range(5):
        b.clock.advance(2)
        for tasks in workers:
            await tasks.run_once()
    stats = await workers[0].stats()
    expect.equal(
        (stats.done, stats.dead, stats.pending, stats.running), (200, 0, 0, 0), "done is final, whatever is swept later"
    )
    expect.equal({job.attempts for job in await b.jobs()}, {1}, "one attempt each")


@running
async def many_are_enqueued_whole_or_not_at_all(b: Bench) -> None:
    """enqueue_many answers each in its place; one bad entry, and nothing is stored (E9)."""
    tasks = b.tasks()
    bad: list[Any] = [{"name": "a"}, {"name": "b", "payload": float("nan")}, {"name": "c"}]
    try:
        await tasks.enqueue_many(bad)
    except InvalidArgument as error:
        expect.that("job 1" in str(error), "the error names the bad entry", str(error))
    else:
        expect.that(False, "a payload of NaN is refused")
    expect.equal(await b.jobs(), [], "nothing is stored of a list with a bad entry")
    entries = [{"name": "a", "payload": number, "idempotency_key": f"k{number % 3}"} for number in range(9)]
    answers = await tasks.enqueue_many(entries)
    expect.equal([one.created for one in answers], [True] * 3 + [False] * 6, "each entry has its own answer")


@running
async def a_worker_keeps_to_its_queues(b: Bench) -> None:
    """`queues=` restricts what a worker claims, and jobs of others wait (E18)."""
    mails, rest = b.tasks(queues=["mails"]), b.tasks()
    ran: list[str] = []
    for name, tasks in (("mails", mails), ("rest", rest)):
        tasks.handle("job", lambda payload, name=name: ran.append(name))
    await rest.enqueue("job")
    await rest.enqueue("job", queue="mails")
    await mails.drain()
    expect.equal(ran, ["mails"], "a worker with queues runs only theirs")
    await rest.drain()
    expect.equal(ran, ["mails", "rest"], "a worker without queues runs the others")
