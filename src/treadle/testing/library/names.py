"""Names that nobody handles: they wait, are told about once, and hinder no others (E19, scenario 90)."""

from __future__ import annotations

from treadle.core.job import State
from treadle.testing.contract import expect
from treadle.testing.library.bench import Bench
from treadle.testing.suite import Group

names = Group[Bench]("names")


@names
async def an_unknown_name_waits_and_is_warned_about_once(b: Bench) -> None:
    """A hundred jobs that no handler is for stay pending and unspent; the log tells of the name once (scenario 90)."""
    tasks = b.tasks()
    tasks.handle("known", lambda payload: None)
    await tasks.enqueue_many([{"name": "new-task", "payload": number} for number in range(100)])
    for _ in range(10):
        await tasks.run_once()
        b.clock.advance(1)
    expect.equal(
        {(job.state, job.attempts) for job in await b.jobs()}, {(State.PENDING, 0)}, "unknown jobs wait, attempts unspent"
    )
    told = [line for line in b.logged if "new-task" in line]
    expect.equal(len(told), 1, f"one warning is given for a name, however many jobs and polls; the log has {told}")
    expect.equal(list(await tasks.pending_names()), ["new-task"], "pending_names lists the name")


@names
async def it_runs_once_a_handler_is_there(b: Bench) -> None:
    """A worker that knows the name runs what waited (scenario 90)."""
    old, new = b.tasks(), b.tasks()
    await old.enqueue_many([{"name": "new-task"}] * 20)
    await old.drain()
    new.handle("new-task", lambda payload: None)
    await new.drain()
    expect.equal((await new.stats()).done, 20, "what waited for a handler is done once there is one")
    expect.equal(list(await new.pending_names()), [], "no name waits any more")


@names
async def unknown_names_hinder_no_others(b: Bench) -> None:
    """Jobs of a known name run past any number of unknown ones of higher priority (E19)."""
    tasks = b.tasks()
    tasks.handle("known", lambda payload: None)
    await tasks.enqueue_many([{"name": f"unknown-{number % 5}", "priority": 100} for number in range(300)])
    known = await tasks.enqueue("known")
    expect.equal(await tasks.drain(), 1, "only the known job runs")
    expect.equal((await b.job(known.id)).state, State.DONE, "the known job is done")
