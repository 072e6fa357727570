"""The moves of E2 and no others: each operation is tried on jobs in every state, and refused where it has no business."""

from __future__ import annotations

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Job, State
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Claim, Demand, Expired, Reclaim
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.factory import LEASE
from treadle.testing.suite import Group

transitions = Group[Trial]("transitions")

OUTCOMES: tuple[Outcome, ...] = (Done("x"), RetryAfter(0.0, "E: x"), Dead("E: x"), Released(0.0, True))


class _OneOfEach:
    """A job of each state that is not running, and the claims under which they ran; and a running one."""

    def __init__(self, jobs: dict[str, Job], claims: dict[str, Claim], running: Claim) -> None:
        self.jobs, self.claims, self.running = jobs, claims, running

    @classmethod
    async def made(cls, t: Trial) -> _OneOfEach:
        """Made on the trial's store; every job but the running one has been claimed and has ended."""
        jobs: dict[str, Job] = {}
        claims: dict[str, Claim] = {}
        for word, outcome in (
            ("done", Done()),
            ("dead", Dead("E: no")),
            ("retrying", RetryAfter(0.0, "E: no")),
            ("released", Released(0.0, True)),
        ):
            held = await t.make.running(word, dedupe_key=word)
            jobs[word], claims[word] = await t.end(held, outcome), held.claim
        running = await t.make.running("running", dedupe_key="running")
        return cls(jobs, claims, running.claim)


@transitions
async def only_a_running_job_is_finished(t: Trial) -> None:
    """No outcome moves a pending, done or dead job, not even under the token that it last ran with (E2, E22)."""
    each = await _OneOfEach.made(t)
    before = await t.everything()
    for word, claim in each.claims.items():
        for outcome in OUTCOMES:
            expect.that(not await t.finish(claim, outcome), f"finish with {outcome} refuses a {word} job")
            await t.unchanged(before, f"finish with {outcome} changes nothing about a {word} job")


@transitions
async def only_a_running_job_is_renewed(t: Trial) -> None:
    """A pending, done or dead job gets no lease (E2, E22)."""
    each = await _OneOfEach.made(t)
    before = await t.everything()
    expect.equal(await t.store.renew(list(each.claims.values()), 60.0, now=t.now), set(), "renew refuses what is not running")
    await t.unchanged(before, "renew changes nothing about jobs that are not running")


@transitions
async def only_a_running_job_is_reclaimed(t: Trial) -> None:
    """A pending, done or dead job is not taken back, whatever the reclaimer believes to have seen (E2, E21)."""
    each = await _OneOfEach.made(t)
    before = await t.everything()
    t.advance(LEASE + 1)
    for word, job in each.jobs.items():
        for outcome in OUTCOMES:
            seen = Expired(each.claims[word], job)
            expect.that(not await t.reclaim(Reclaim(seen, outcome)), f"reclaim with {outcome} refuses a {word} job")
            await t.unchanged(before, f"reclaim with {outcome} changes nothing about a {word} job")


@transitions
async def only_a_pending_job_is_claimed(t: Trial) -> None:
    """Running, done and dead jobs are claimed by nobody, after the lease either: that takes a reclaim (E2, E21)."""
    await _OneOfEach.made(t)
    claimed = await t.claimable()
    expect.equal(sorted(job.name for job in claimed), ["released", "retrying"], "only pending jobs are claimed")
    t.advance(10 * LEASE)
    expect.same_ids(await t.claimable(), [], "a running job whose lease is past is claimed only after it was reclaimed")


@transitions
async def only_a_dead_job_is_redriven(t: Trial) -> None:
    """Pending, running and done jobs are not sent round again (E2, E17)."""
    each = await _OneOfEach.made(t)
    before = [job for job in await t.everything() if job.state is not State.DEAD]
    for policy in RedrivePolicy:
        answer = await t.store.redrive(JobFilter(ids=[job.id for job in before]), policy, now=t.now)
        expect.equal((list(answer.revived), list(answer.dropped)), ([], []), f"redrive with {policy} refuses what is not dead")
    answer = await t.store.redrive(EVERYTHING, RedrivePolicy.RESET, now=t.now)
    expect.equal(list(answer.revived), [each.jobs["dead"].id], "redrive takes the dead job")
    for job in before:
        expect.same_job(await t.job(job.id), job, f"redrive changes nothing about a {job.state} job")


@transitions
async def only_a_pending_job_is_run_now(t: Trial) -> None:
    """Running, done and dead jobs are not made due (E2)."""
    await _OneOfEach.made(t)
    before = [job for job in await t.everything() if job.state is not State.PENDING]
    t.advance(1)
    which = JobFilter(ids=[job.id for job in before])
    expect.equal(await t.store.run_now(which, now=t.now), 0, "run_now counts only pending jobs")
    for job in before:
        expect.same_job(await t.job(job.id), job, f"run_now changes nothing about a {job.state} job")


@transitions
async def only_a_running_job_is_kept_from_deletion(t: Trial) -> None:
    """Of one job in each state a deletion of everything leaves the running one (E2)."""
    each = await _OneOfEach.made(t)
    t.advance(10 * LEASE)
    expect.equal(await t.store.delete(EVERYTHING, now=t.now), len(each.jobs), "delete takes every job but the running one")
    left = await t.everything()
    expect.equal([job.id for job in left], [each.running.id], "the running job is left")
    expect.that(await t.finish(each.running, Done()), "its claim still holds")


@transitions
async def enqueueing_moves_no_stored_job(t: Trial) -> None:
    """Enqueueing the id or the key of a stored job again changes it in no state (E2, E9)."""
    await _OneOfEach.made(t)
    before = await t.everything()
    t.advance(5)
    await t.enqueue(*(t.new(job.name, "new", id=job.id) for job in before))
    unfinished = [job for job in before if job.state in (State.PENDING, State.RUNNING)]
    await t.enqueue(*(t.new(job.name, "new", dedupe_key=job.dedupe_key or "") for job in unfinished))
    await t.unchanged(before, "an enqueue changes no stored job")


@transitions
async def a_deleted_job_is_gone_for_every_operation(t: Trial) -> None:
    """What is not stored cannot be claimed, finished, renewed, reclaimed, redriven, hurried or deleted (E2)."""
    each = await _OneOfEach.made(t)
    await t.store.delete(JobFilter(ids=[job.id for job in each.jobs.values()]), now=t.now)
    await t.finish(each.running, Done())
    await t.store.delete(EVERYTHING, now=t.now)
    gone = JobFilter(ids=[job.id for job in each.jobs.values()])
    for word, claim in each.claims.items():
        for outcome in OUTCOMES:
            expect.that(not await t.finish(claim, outcome), f"a deleted {word} job is not finished")
            expect.that(
                not await t.reclaim(Reclaim(Expired(claim, each.jobs[word]), outcome)), f"a deleted {word} job is not reclaimed"
            )
    expect.equal(await t.store.renew(list(each.claims.values()), 60.0, now=t.now), set(), "deleted jobs are not renewed")
    answer = await t.store.redrive(gone, RedrivePolicy.RESET, now=t.now)
    expect.equal(list(answer.revived), [], "a deleted job is not redriven")
    expect.equal(await t.store.run_now(gone, now=t.now), 0, "a deleted job is not run now")
    expect.equal(await t.store.delete(gone, now=t.now), 0, "a deleted job is not deleted again")
    expect.equal(len((await t.claim(Demand(10))).jobs), 0, "a deleted job is not claimed")
    expect.equal(await t.everything(), [], "nothing brings a deleted job back")
