"""Intervals: once at first, then each time so long after the last, never two at once (T1 to T4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from treadle.core.errors import InvalidArgument
from treadle.core.job import Job, State
from treadle.core.policies.retry import Fixed
from treadle.tasks.app import Tasks
from treadle.testing.contract import expect
from treadle.testing.library.bench import Bench
from treadle.testing.suite import Group

intervals = Group[Bench]("intervals")


def _reporting(b: Bench, runs: list[object], seconds: float = 60.0, payload: object = None) -> Tasks:
    """A process that registers the interval."""
    tasks = b.tasks()

    @tasks.handler("report")
    async def report(payload: object) -> None:
        runs.append(payload)

    tasks.every("report", seconds, payload)
    return tasks


async def _waiting(tasks: Tasks) -> Job:
    return expect.one(await tasks.list(states=["pending"], name="report"), "one copy of the interval waits")


@intervals
async def it_runs_at_once_and_then_each_interval_after_the_last(b: Bench) -> None:
    """The first run is due at once; the next is a pending job, due an interval after the end of the last (T1)."""
    runs: list[object] = []
    tasks = _reporting(b, runs, 60.0)
    await tasks.run_once()
    expect.equal(len(runs), 1, "the first run comes at once")
    await tasks.run_once()
    expect.equal(len(runs), 1, "the second does not")
    expect.equal(
        (await _waiting(tasks)).run_at, b.clock.now().replace(minute=1), "the next is due a minute after the first ended"
    )
    b.clock.advance(59.999)
    expect.equal(await tasks.drain(), 0, "it waits to the end of the interval")
    b.clock.advance(0.001)
    await tasks.drain()
    expect.equal(len(runs), 2, "it runs when the interval is over")


@intervals
async def after_an_outage_it_runs_once(b: Bench) -> None:
    """Nothing ran for a hundred intervals: it runs once, and then an interval after that (T1)."""
    runs: list[object] = []
    await _reporting(b, runs).drain()
    b.clock.advance(60 * 100 + 7)
    again = _reporting(b, runs)
    await again.drain()
    expect.equal(len(runs), 2, "a hundred missed intervals are one run")
    wait = (await _waiting(again)).run_at - b.clock.now()
    expect.equal(wait.total_seconds(), 60.0, "the next is due an interval after it")


@intervals
async def a_restart_does_not_push_it_away(b: Bench) -> None:
    """A process that is started again, at half past and at ten to, leaves the copy due on the hour (scenario 49)."""
    runs: list[object] = []
    await _reporting(b, runs, 3600.0).drain()
    due = (await _waiting(b.tasks())).run_at
    for minutes in (30, 20):
        b.clock.advance(minutes * 60)
        restarted = _reporting(b, runs, 3600.0)
        await restarted.start()
        await restarted.stop()
        expect.equal((await _waiting(restarted)).run_at, due, "a restart leaves the one waiting copy as it is")
    b.clock.advance(600)
    await _reporting(b, runs, 3600.0).drain()
    expect.equal(len(runs), 2, "on the hour it runs")


@intervals
async def the_last_registration_wins(b: Bench) -> None:
    """Interval and payload of the last registration hold from the next copy on (T2)."""
    runs: list[object] = []
    tasks = _reporting(b, runs, 60.0, "old")
    tasks.every("report", 90.0, "new")
    await tasks.drain()
    expect.equal(runs, ["new"], "of two registrations before the first copy the last one counts")
    changed = _reporting(b, runs, 30.0, "newest")
    b.clock.advance(90)
    await changed.drain()
    expect.equal(runs, ["new", "new"], "the waiting copy keeps its payload")
    expect.equal((await _waiting(changed)).payload, "newest", "the next copy has the new one")
    b.clock.advance(30)
    await changed.drain()
    expect.equal(runs, ["new", "new", "newest"], "and comes after the new interval")


@intervals
async def a_run_that_fails_for_good_is_followed_too(b: Bench) -> None:
    """While a run waits to be retried there is no other copy; once it is dead the next one waits (T1)."""
    tasks = b.tasks(retry=Fixed(5), max_attempts=2)

    @tasks.handler("report")
    async def report(payload: object) -> None:
        raise ValueError

    tasks.every("report", 60.0)
    await tasks.drain()
    retried = await _waiting(tasks)
    expect.equal(retried.attempts, 1, "the run that failed waits for its second try, alone")
    b.clock.advance(5)
    await tasks.drain()
    expect.equal((await b.job(retried.id)).state, State.DEAD, "the second try was the last")
    expect.equal((await _waiting(tasks)).run_at, b.clock.now().replace(minute=1), "the next copy is due an interval after that")


@intervals
async def deleting_the_copy_does_not_stop_it(b: Bench) -> None:
    """A preview counts what pruning then deletes; the next tick puts the copy back, due when it was (T3, scenario 122)."""
    runs: list[object] = []
    tasks = _reporting(b, runs, 60.0)
    await tasks.drain()
    due = (await _waiting(tasks)).run_at
    preview = await tasks.prune(0, states=["pending"], dry_run=True)
    expect.equal((preview.matched, preview.deleted), (1, 0), "the preview counts the copy and deletes nothing")
    pruned = await tasks.prune(0, states=["pending"])
    expect.equal((pruned.matched, pruned.deleted), (1, 1), "what was counted is deleted")
    expect.equal(await tasks.list(states=["pending"]), [], "no copy waits")
    await tasks.run_once()
    expect.equal((await _waiting(tasks)).run_at, due, "the next tick puts it back, due when it was")
    expect.equal(len(runs), 1, "and does not run it early")


@intervals
async def many_processes_keep_one_copy(b: Bench) -> None:
    """Several processes that register and run the same interval never have two unfinished copies (T4)."""
    runs: list[object] = []
    processes = [_reporting(b, runs) for _ in range(4)]
    for turn in range(1, 4):
        await asyncio.gather(*(tasks.drain() for tasks in processes))
        expect.equal(len(runs), turn, "four processes run one copy each interval")
        await _waiting(processes[0])
        b.clock.advance(60)


@intervals
async def durations_are_elapsed_time(b: Bench) -> None:
    """Across a change of the clocks a delay and an interval are so many real seconds (scenario 33)."""
    b.clock.advance((datetime(2026, 3, 29, 0, 30, tzinfo=UTC) - b.clock.now()).total_seconds())
    runs: list[object] = []
    tasks = _reporting(b, runs, 7200.0)
    await tasks.drain()
    delayed = await tasks.enqueue("report", delay=7200)
    expected = datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
    expect.equal((await b.job(delayed.id)).run_at, expected, "a delay of two hours is 7,200 s")
    copies = [job.run_at for job in await tasks.list(states=["pending"], name="report")]
    expect.equal(copies, [expected, expected], "and so is an interval")


@intervals
async def what_is_no_interval_is_refused(b: Bench) -> None:
    """Zero, negative, NaN and infinite intervals, one without a handler, and one after start raise InvalidArgument (T2)."""
    tasks = b.tasks()
    await _refused(lambda: tasks.every("report", 60.0), "an interval without a handler")
    tasks.handle("report", lambda payload: None)
    for seconds in (0, -1, float("nan"), float("inf"), True):
        await _refused(partial(tasks.every, "report", seconds), f"an interval of {seconds} s")
    await tasks.start()
    await _refused(lambda: tasks.every("report", 60.0), "an interval registered after start")
    await tasks.stop()
    expect.equal(await b.jobs(), [], "nothing is enqueued by what is refused")


async def _refused(call: Callable[[], object], words: str) -> None:
    try:
        call()
    except InvalidArgument:
        return
    expect.that(False, f"{words} raises InvalidArgument")
