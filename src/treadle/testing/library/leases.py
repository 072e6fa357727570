"""Leases: what becomes of the jobs of a worker that is never heard of again (E20 to E22)."""

from __future__ import annotations

from treadle.core.job import State
from treadle.core.outcome import Done
from treadle.core.store import Ending
from treadle.testing.contract import expect
from treadle.testing.library.bench import Bench
from treadle.testing.suite import Group

leases = Group[Bench]("leases")


@leases
async def a_lost_attempt_runs_again_elsewhere(b: Bench) -> None:
    """A job whose worker died runs on another one once its lease is past, its first attempt spent (E3, E21)."""
    tasks = b.tasks()
    tasks.handle("job", lambda payload: None)
    enqueued = await tasks.enqueue("job")
    await b.lost(enqueued.job)
    b.clock.advance(59)
    expect.equal(await tasks.drain(), 0, "nobody touches a job whose lease holds")
    b.clock.advance(2)
    expect.equal(await tasks.drain(), 1, "a job whose lease is past runs again")
    job = await b.job(enqueued.id)
    expect.equal((job.state, job.attempts), (State.DONE, 2), "it is done at its second attempt")


@leases
async def a_job_is_dead_only_when_its_tries_are_used_up(b: Bench) -> None:
    """Three lost attempts of three: pending, pending, dead, with the error that says why (scenario 62)."""
    tasks = b.tasks()
    enqueued = await tasks.enqueue("job", max_attempts=3)
    for attempt, state in ((1, State.PENDING), (2, State.PENDING), (3, State.DEAD)):
        await b.lost(enqueued.job, lease=1.0)
        b.clock.advance(1.5)
        await tasks.run_once()
        job = await b.job(enqueued.id)
        expect.equal((job.state, job.attempts), (state, attempt), f"after {attempt} lost attempts of 3 the job is {state}")
    job = await b.job(enqueued.id)
    expect.equal(job.last_error, "visibility timeout exceeded", "last_error says that the lease ran out")
    expect.equal(len(job.failures), 3, "each lost attempt is on record")


@leases
async def a_worker_that_does_not_know_a_job_takes_it_back_unharmed(b: Bench) -> None:
    """Any worker sweeps, but runs and fails nothing that it does not know (scenario 60)."""
    knows, other = b.tasks(), b.tasks()
    knows.handle("b", lambda payload: None)
    other.handle("a", lambda payload: None)
    enqueued = await knows.enqueue("b", max_attempts=5)
    await b.lost(enqueued.job)
    b.clock.advance(61)
    await other.drain()
    job = await b.job(enqueued.id)
    expect.equal((job.state, job.attempts), (State.PENDING, 1), "a worker that does not know the job sets it pending")
    await knows.drain()
    expect.equal((await b.job(enqueued.id)).state, State.DONE, "one that knows it runs it")


@leases
async def a_late_result_is_refused(b: Bench) -> None:
    """A worker that comes back after its job ran elsewhere changes nothing (E22)."""
    tasks = b.tasks()
    runs: list[object] = []
    tasks.handle("job", runs.append)
    enqueued = await tasks.enqueue("job")
    claim = await b.lost(enqueued.job)
    b.clock.advance(61)
    await tasks.drain()
    took = await b.store.finish([Ending(claim, Done("late"))], now=b.clock.now())
    expect.equal(took, set(), "the late result is refused")
    job = await b.job(enqueued.id)
    expect.equal((job.state, job.note, len(runs)), (State.DONE, None, 1), "the job is as the second worker left it")
