"""Stopping: running jobs may finish, the rest is given back, and nothing is lost (E24)."""

from __future__ import annotations

import asyncio

from treadle.core.job import State
from treadle.testing.contract import expect
from treadle.testing.library.bench import Bench
from treadle.testing.suite import Group

stopping = Group[Bench]("stopping")


@stopping
async def running_jobs_finish_within_the_grace(b: Bench) -> None:
    """Stop claims nothing more and waits for what runs (E24)."""
    tasks = b.tasks()
    started, go = asyncio.Event(), asyncio.Event()

    @tasks.handler("job")
    async def handler(payload: object) -> None:
        started.set()
        await go.wait()

    first, second = await tasks.enqueue("job"), await tasks.enqueue("job")
    await tasks.start()
    await b.happens(started, "the first job starts")
    stop = asyncio.create_task(tasks.stop(grace=30))
    await asyncio.sleep(0)
    go.set()
    await stop
    states = [(await b.job(one.id)).state for one in (first, second)]
    expect.equal(states, [State.DONE, State.PENDING], "what ran is done, what waited still waits")


@stopping
async def what_outlasts_the_grace_is_given_back(b: Bench) -> None:
    """A job cut short is pending with its attempt refunded, and runs to its end on the next worker (E24)."""
    tasks, next_one = b.tasks(), b.tasks()
    started = asyncio.Event()

    @tasks.handler("job", max_attempts=1)
    async def handler(payload: object) -> None:
        started.set()
        await asyncio.Event().wait()

    next_one.handle("job", lambda payload: None, max_attempts=1)
    enqueued = await tasks.enqueue("job")
    await tasks.start()
    await b.happens(started, "the job starts")
    await tasks.stop(grace=0)
    job = await b.job(enqueued.id)
    expect.equal(
        (job.state, job.attempts, job.interruptions),
        (State.PENDING, 0, 1),
        "a job cut short has its attempt back, and is counted",
    )
    await next_one.drain()
    job = await b.job(enqueued.id)
    expect.equal((job.state, job.attempts), (State.DONE, 1), "the next worker runs it, as its first attempt")


@stopping
async def from_the_third_interruption_on_the_attempt_counts(b: Bench) -> None:
    """A job that is cut short over and over does not run for ever (E24)."""
    tasks = b.tasks()
    started = asyncio.Event()

    @tasks.handler("job", max_attempts=2)
    async def handler(payload: object) -> None:
        started.set()
        await asyncio.Event().wait()

    enqueued = await tasks.enqueue("job")
    for state, attempts in ((State.PENDING, 0), (State.PENDING, 0), (State.PENDING, 1), (State.DEAD, 2)):
        started.clear()
        await tasks.start()
        await b.happens(started, "the job starts")
        await tasks.stop(grace=0)
        job = await b.job(enqueued.id)
        expect.equal((job.state, job.attempts), (state, attempts), f"after {job.interruptions} interruptions")
