"""Attempts: counted at the claim, and each unsuccessful one on record (E3, E15)."""

from __future__ import annotations

from treadle.core.filter import EVERYTHING
from treadle.core.job import Failure
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.store import Claim, Demand, Ending, Reclaim
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.factory import LEASE
from treadle.testing.suite import Group

attempts = Group[Trial]("attempts")


@attempts
async def an_attempt_counts_at_its_claim(t: Trial) -> None:
    """The count goes up when the job is claimed, so that a worker's death has spent it (E3)."""
    job = await t.make.pending()
    for number in (1, 2, 3):
        held = await t.hold(job.id)
        expect.equal(held.job.attempts, number, f"claim {number} of a job that fails is its attempt {number}")
        ended = await t.end(held, RetryAfter(0.0, "E: no"))
        expect.equal(ended.attempts, number, "failing does not count again")


@attempts
async def started_at_is_that_of_the_present_attempt(t: Trial) -> None:
    """Each claim sets started_at anew."""
    job = await t.make.pending()
    for _ in range(2):
        t.advance(10)
        held = await t.hold(job.id)
        expect.equal(held.job.started_at, t.now, "started_at is the moment of the latest claim")
        t.advance(1)
        await t.end(held, RetryAfter(0.0, "E: no"))


@attempts
async def each_failure_leaves_a_record(t: Trial) -> None:
    """Attempt number, worker, start, end and error of each failure are read with the job, in order (E15)."""
    job = await t.make.pending()
    expected: list[Failure] = []
    for number in (1, 2, 3):
        t.advance(10)
        claimed = await t.claim(Demand(1), worker=f"worker-{number}", token=f"token-{number}")
        started = t.now
        t.advance(0.25)
        outcome = Dead(f"E: {number}") if number == 3 else RetryAfter(0.0, f"E: {number}")
        expect.that(await t.finish(Claim(claimed.jobs[0].id, f"token-{number}"), outcome), "the attempt ends")
        expected.append(Failure(number, f"worker-{number}", started, t.now, f"E: {number}"))
        stored = await t.job(job.id)
        expect.equal(list(stored.failures), expected, f"after {number} failures there are as many records, in order")
        expect.equal(stored.last_error, f"E: {number}", "last_error is that of the latest failure")
    found = expect.one(await t.store.find(EVERYTHING, limit=10, now=t.now), "find answers the one stored job")
    expect.equal(list(found.failures), expected, "find answers the records too")


@attempts
async def an_expired_lease_leaves_a_record_too(t: Trial) -> None:
    """An attempt that was lost with its worker is on record like any other failure (E15, E21)."""
    held = await t.make.expired()
    expired = expect.one(await t.store.expired(1, now=t.now), "expired answers the one running job whose lease is past")
    await t.reclaim(Reclaim(expired, RetryAfter(0.0, "visibility timeout exceeded")))
    job = await t.job(held.job.id)
    expected = Failure(1, held.job.worker or "", t.at(-LEASE - 1.0), t.now, "visibility timeout exceeded")
    expect.equal(list(job.failures), [expected], "a reclaimed attempt leaves a record")
    expect.equal(job.last_error, "visibility timeout exceeded", "last_error says that the lease ran out")


@attempts
async def success_and_release_leave_no_record(t: Trial) -> None:
    """Only unsuccessful attempts are recorded (E15)."""
    job = await t.make.pending()
    released = await t.end(await t.hold(job.id), Released(0.0, True))
    expect.equal((list(released.failures), released.last_error), ([], None), "a release is no failure")
    done = await t.end(await t.hold(job.id), Done())
    expect.equal((list(done.failures), done.last_error), ([], None), "a success is no failure")


@attempts
async def records_belong_to_their_own_job(t: Trial) -> None:
    """Many jobs that fail in one batch each have their own records."""
    held = [await t.make.running(f"n{number}") for number in range(6)]
    await t.store.finish([Ending(one.claim, Dead(f"E: {one.job.name}")) for one in held], now=t.now)
    for job in await t.store.get([one.job.id for one in held]):
        expect.equal(
            [failure.error for failure in job.failures], [f"E: {job.name}"], "a job has the records of its own attempts"
        )
