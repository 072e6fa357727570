"""Run now: pending jobs become due at once, and no others are touched (E2)."""

from __future__ import annotations

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.outcome import RetryAfter
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

run_now = Group[Trial]("run_now")


@run_now
async def a_waiting_job_is_due_at_once(t: Trial) -> None:
    """A delayed job that is run now can be claimed in the same moment, and is otherwise unchanged (E2)."""
    job = await t.make.pending("a", {"b": 1}, delay=3600.0, priority=2, dedupe_key="k")
    expect.equal(await t.store.run_now(JobFilter(ids=[job.id]), now=t.now), 1, "run_now answers how many pending jobs matched")
    hurried = await t.job(job.id)
    expect.equal(hurried.run_at, t.now, "a job that is run now is due now")
    expect.same_job(hurried, job, "run_now changes run_at alone", but={"run_at"})
    expect.same_ids(await t.claimable(), [job], "a job that is run now is claimed")


@run_now
async def only_pending_jobs_are_run_now(t: Trial) -> None:
    """Running, done and dead jobs are left alone and not counted (E2)."""
    await t.make.running("a")
    await t.make.done("b")
    await t.make.dead("c")
    before = await t.everything()
    expect.equal(await t.store.run_now(EVERYTHING, now=t.now), 0, "no job is pending, so none is run now")
    await t.unchanged(before, "run_now leaves running, done and dead jobs alone")


@run_now
async def only_jobs_that_match_are_run_now(t: Trial) -> None:
    """The filter decides which jobs are hurried."""
    first = await t.make.pending("a", delay=60.0)
    other = await t.make.pending("b", delay=60.0)
    await t.make.pending("a", delay=60.0, queue="q")
    which = JobFilter(names=frozenset({"a"}), queues=frozenset({"default"}))
    expect.equal(await t.store.run_now(which, now=t.now), 1, "run_now takes the pending jobs that match")
    expect.equal((await t.job(first.id)).run_at, t.now, "the job that matches is due now")
    expect.same_job(await t.job(other.id), other, "a job that does not match stays as it was")


@run_now
async def a_job_that_is_due_already_is_not_put_back(t: Trial) -> None:
    """Running a due job now leaves it due."""
    job = await t.make.pending()
    t.advance(10)
    expect.equal(await t.store.run_now(EVERYTHING, now=t.now), 1, "a pending job that is due counts")
    expect.that((await t.job(job.id)).run_at <= t.now, "a due job stays due")
    expect.same_ids(await t.claimable(), [job], "a due job is claimed after run_now")


@run_now
async def a_retry_does_not_have_to_wait(t: Trial) -> None:
    """A job that waits for its next try can be tried at once, with its count as it is (E2)."""
    job = await t.make.pending()
    await t.end(await t.hold(job.id), RetryAfter(900.0, "E: no"))
    expect.equal(await t.store.run_now(JobFilter(ids=[job.id]), now=t.now), 1, "a job that waits for its next try is pending")
    expect.equal((await t.job(job.id)).run_at, t.now, "its next try is due now")
    expect.equal((await t.hold(job.id)).job.attempts, 2, "run_now gives no attempt back")


@run_now
async def a_hurried_job_keeps_to_priority(t: Trial) -> None:
    """Among due jobs a hurried one takes its place by priority, run_at and id (E28)."""
    due = await t.make.pending("due")
    t.advance(1)
    low = await t.make.pending("low", delay=60.0)
    high = await t.make.pending("high", delay=60.0, priority=1)
    await t.store.run_now(JobFilter(ids=[low.id, high.id]), now=t.now)
    expect.same_ids(await t.claimable(), [high, due, low], "hurried jobs are claimed in the order of E28")
