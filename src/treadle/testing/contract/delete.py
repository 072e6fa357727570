"""Deleting: any job but a running one, within bounds, and its keys with it (E2, E29)."""

from __future__ import annotations

import asyncio

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Key, State
from treadle.core.outcome import Done
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

delete = Group[Trial]("delete")


@delete
async def pending_done_and_dead_jobs_are_deleted(t: Trial) -> None:
    """Each of them is gone afterwards, from every way to look (E2)."""
    for job in (await t.make.pending("a"), await t.make.done("b"), await t.make.dead("c")):
        expect.equal(await t.store.delete(JobFilter(ids=[job.id]), now=t.now), 1, f"deleting a {job.state} job answers 1")
        expect.equal(await t.store.get([job.id]), [], f"a deleted {job.state} job is gone")
    expect.equal(await t.everything(), [], "find shows no deleted job")
    expect.equal(await t.store.count(EVERYTHING, now=t.now), 0, "count counts no deleted job")
    expect.same_ids(await t.claimable(), [], "a deleted pending job is not claimed")
    stats = await t.store.stats(now=t.now)
    expect.equal((stats.pending, stats.running, stats.done, stats.dead), (0, 0, 0, 0), "stats count no deleted job")


@delete
async def running_jobs_are_never_deleted(t: Trial) -> None:
    """Asked for by id, by state or with everything, a running job stays (E2)."""
    held = await t.make.running()
    for which in (JobFilter(ids=[held.job.id]), JobFilter(states=frozenset({State.RUNNING})), EVERYTHING):
        expect.equal(await t.store.delete(which, now=t.now), 0, "a running job is not deleted")
    t.advance(3600)
    expect.equal(await t.store.delete(EVERYTHING, now=t.now), 0, "a running job is not deleted after its lease either")
    expect.same_job(await t.job(held.job.id), held.job, "a running job is left as it is")


@delete
async def only_jobs_that_match_are_deleted(t: Trial) -> None:
    """The filter decides, by the predicate of find and count (L5)."""
    jobs = [
        await t.make.done("a"),
        await t.make.done("b"),
        await t.make.done("a", queue="q"),
        await t.make.done("a", idempotency_key="k"),
        await t.make.dead("a"),
    ]
    which = JobFilter(states=frozenset({State.DONE}), names=frozenset({"a"}), queues=frozenset({"default"}), keyed=False)
    expect.equal(await t.store.delete(which, now=t.now), 1, "delete takes the jobs that match")
    expect.same_ids(await t.everything(), list(reversed(jobs[1:])), "jobs that do not match are left")


@delete
async def the_oldest_go_first_up_to_the_limit(t: Trial) -> None:
    """No more than the limit is deleted at a call, oldest id first, and running jobs do not use it up (E29)."""
    await t.make.running("oldest", queue="other")
    jobs = [await t.make.done("job") for _ in range(5)]
    for expected, left in ((2, jobs[2:]), (2, jobs[4:]), (1, []), (0, [])):
        expect.equal(await t.store.delete(EVERYTHING, limit=2, now=t.now), expected, "delete takes no more than its limit")
        done = await t.store.find(JobFilter(states=frozenset({State.DONE})), limit=10, now=t.now)
        expect.same_ids(done, list(reversed(left)), "delete takes the oldest ids first")


@delete
async def age_counts_from_the_end_inclusive(t: Trial) -> None:
    """older_than counts from finished_at for done and dead jobs, and reaches exactly that age (L5, E29)."""
    job = await t.make.pending(max_attempts=1)
    t.advance(1000)
    await t.end(await t.hold(job.id), Done())
    t.advance(9.999999)
    which = JobFilter(older_than=10.0)
    expect.equal(
        await t.store.delete(which, now=t.now), 0, "a job that ended 9.999999 s ago is not 10 s old, whenever it was made"
    )
    t.advance(0.000001)
    expect.equal(await t.store.delete(which, now=t.now), 1, "a job that ended exactly 10 s ago is 10 s old")


@delete
async def age_of_unfinished_jobs_counts_from_their_making(t: Trial) -> None:
    """older_than counts from created_at for pending jobs, whenever they are due (L5)."""
    await t.make.pending(delay=3600.0)
    t.advance(9.999999)
    expect.equal(await t.store.delete(JobFilter(older_than=10.0), now=t.now), 0, "a job made 9.999999 s ago is not 10 s old")
    t.advance(0.000001)
    expect.equal(await t.store.delete(JobFilter(older_than=10.0), now=t.now), 1, "a job made exactly 10 s ago is 10 s old")


@delete
async def age_zero_reaches_everything(t: Trial) -> None:
    """older_than=0 takes jobs of this very moment: pruning with '0s' leaves nothing behind (L5)."""
    await t.make.pending()
    await t.make.done("b")
    expect.equal(await t.store.delete(JobFilter(older_than=0.0), now=t.now), 2, "older_than=0 takes jobs made just now")


@delete
async def deleting_frees_every_kind_of_key(t: Trial) -> None:
    """Nothing of a deleted job keeps its key (E6, E7)."""
    for kind in ("idempotency", "dedupe", "schedule"):
        key = Key(kind, "k")
        job = await t.make.pending("job", key=key)
        await t.store.delete(JobFilter(ids=[job.id]), now=t.now)
        [again] = await t.enqueue(t.new("job", key=key))
        expect.that(again.created, f"the {kind} key of a deleted job is free")


@delete
async def the_records_go_with_the_job(t: Trial) -> None:
    """A new job under a deleted job's id has no failures of its own yet."""
    dead = await t.make.dead()
    await t.store.delete(JobFilter(ids=[dead.id]), now=t.now)
    again = await t.make.pending(id=dead.id)
    expect.equal(list((await t.job(again.id)).failures), [], "the records of a deleted job are gone with it")


@delete
async def many_are_deleted_in_one_call(t: Trial) -> None:
    """Without a limit all that match are deleted, however many (E29)."""
    await t.enqueue(*(t.new(f"n{number % 3}") for number in range(2500)))
    expect.equal(await t.store.delete(EVERYTHING, now=t.now), 2500, "2,500 jobs are deleted with one call")
    expect.equal(await t.store.count(EVERYTHING, now=t.now), 0, "nothing is left of them")


@delete
async def those_who_delete_at_once_do_not_stop_each_other(t: Trial) -> None:
    """Fewer than the limit means that nothing more matches, also where others delete the same jobs meanwhile (E29)."""
    await t.enqueue(*(t.new(f"n{number % 3}") for number in range(1500)))
    batches = await asyncio.gather(*(t.store.delete(EVERYTHING, limit=400, now=t.now) for _ in range(3)))
    expect.equal(batches, [400, 400, 400], "each of three callers deletes up to its limit, since there is enough for all")
    rest = await asyncio.gather(*(t.store.delete(EVERYTHING, now=t.now) for _ in range(3)))
    expect.equal(sum(rest), 300, "of three callers without a limit each job is deleted by one")
    expect.equal(await t.store.count(EVERYTHING, now=t.now), 0, "nothing is left of them")
