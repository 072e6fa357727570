"""Redriving: sending dead letters round again, at most one for each key (E17)."""

from __future__ import annotations

import asyncio

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Job, Key, State
from treadle.core.outcome import Dead, Released, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Claim, Demand, Ending, Redriven
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

redrive = Group[Trial]("redrive")

RESET, KEEP = RedrivePolicy.RESET, RedrivePolicy.KEEP


async def _redrive(
    t: Trial, which: JobFilter = EVERYTHING, policy: RedrivePolicy = RESET, limit: int | None = None
) -> Redriven:
    return await t.store.redrive(which, policy, limit=limit, now=t.now)


async def _dead_with(t: Trial, key: Key, name: str = "job") -> Job:
    return await t.make.dead(name, key=key)


@redrive
async def a_reset_job_starts_again_from_nothing(t: Trial) -> None:
    """With RESET the job is pending, due now, its count at 0, so that it has all its attempts again (E17)."""
    dead = await t.make.dead("job", {"a": 1}, max_attempts=3, priority=4, queue="q")
    t.advance(100)
    answer = await _redrive(t)
    expect.equal((list(answer.revived), list(answer.dropped)), ([dead.id], []), "redrive answers the jobs that it revived")
    job = await t.job(dead.id)
    expect.equal(
        (job.state, job.attempts, job.run_at), (State.PENDING, 0, t.now), "a reset job is pending, due now, attempts 0"
    )
    expect.equal((job.finished_at, job.lease_until, job.worker), (None, None, None), "a reset job has no end and no worker")
    expect.same_job(
        job, dead, "redriving keeps what the job is and what befell it", but={"state", "attempts", "run_at", "finished_at"}
    )
    again = await t.hold(dead.id)
    expect.equal((again.job.attempts, again.job.max_attempts), (1, 3), "the handler sees attempt 1 of 3 again")


@redrive
async def a_reset_counts_interruptions_anew_and_a_kept_count_goes_on(t: Trial) -> None:
    """RESET starts interruptions from 0 with the attempts, KEEP leaves both (E17, E24)."""
    for policy, expected in ((RESET, 0), (KEEP, 2)):
        job = await t.make.pending(f"{policy}")
        for outcome in (Released(0.0, True), Released(0.0, True), Dead("E: no")):
            await t.end(await t.hold(job.id), outcome)
        await _redrive(t, JobFilter(ids=[job.id]), policy)
        expect.equal((await t.job(job.id)).interruptions, expected, f"interruptions after a redrive with {policy}")


@redrive
async def a_kept_count_gives_one_more_try(t: Trial) -> None:
    """With KEEP the count goes on, so that exactly one more attempt is made (E17)."""
    job = await t.make.pending(max_attempts=2)
    await t.end(await t.hold(job.id), RetryAfter(0.0, "E: 1"))
    await t.end(await t.hold(job.id), Dead("E: 2"))
    await _redrive(t, policy=KEEP)
    expect.equal((await t.job(job.id)).attempts, 2, "KEEP leaves the count as it is")
    again = await t.hold(job.id)
    expect.equal(
        (again.job.attempts, again.job.max_attempts), (3, 2), "the one more try is beyond max_attempts, so it is the last"
    )


@redrive
async def the_records_of_past_failures_stay(t: Trial) -> None:
    """What went wrong before can still be read after a redrive (E15)."""
    for policy in (RESET, KEEP):
        dead = await t.make.dead(f"{policy}", error="E: before")
        await _redrive(t, JobFilter(ids=[dead.id]), policy)
        job = await t.job(dead.id)
        expect.equal(list(job.failures), list(dead.failures), f"the records of failures stay with {policy}")
        expect.equal(job.last_error, "E: before", f"last_error stays until the next attempt ends, with {policy}")


@redrive
async def only_dead_jobs_are_redriven(t: Trial) -> None:
    """A redrive of everything touches nothing but dead letters (E2, E17)."""
    await t.make.pending("a")
    await t.make.running("b")
    await t.make.done("c")
    before = await t.everything()
    dead = await t.make.dead("d")
    answer = await _redrive(t)
    expect.equal(list(answer.revived), [dead.id], "only the dead job is redriven")
    for job in before:
        expect.same_job(await t.job(job.id), job, f"a {job.state} job is left alone")


@redrive
async def only_jobs_that_match_are_redriven(t: Trial) -> None:
    """The filter decides: names, queues, ids, age (E17)."""
    a, b = await t.make.dead("a", queue="q1"), await t.make.dead("b", queue="q2")
    t.advance(10)
    fresh = await t.make.dead("a", queue="q2")
    answer = await _redrive(t, JobFilter(names=frozenset({"a"}), older_than=10.0))
    expect.equal(list(answer.revived), [a.id], "redrive takes the dead jobs that match its filter")
    answer = await _redrive(t, JobFilter(queues=frozenset({"q2"})))
    expect.equal(list(answer.revived), [b.id, fresh.id], "redrive takes the dead jobs of a queue")
    expect.equal(list((await _redrive(t, JobFilter(ids=[t.make.id()]))).revived), [], "an unknown id redrives nothing")


@redrive
async def the_oldest_go_first_up_to_the_limit(t: Trial) -> None:
    """Dead letters are redriven oldest id first, no more than the limit at a call (E17)."""
    dead = [await t.make.dead(f"n{number}") for number in range(5)]
    for expected in (dead[:2], dead[2:4], dead[4:], []):
        answer = await _redrive(t, limit=2)
        expect.equal(list(answer.revived), [job.id for job in expected], "redrive takes the oldest ids, up to its limit")


@redrive
async def many_are_redriven_in_one_call(t: Trial) -> None:
    """Without a limit all that match are redriven, however many (E17)."""
    jobs = [t.new(f"n{number % 3}") for number in range(1200)]
    await t.enqueue(*jobs)
    claimed = await t.claim(Demand(1200), token="bulk")  # noqa: S106  # a claim's token is no password
    await t.store.finish([Ending(Claim(job.id, "bulk"), Dead("E: no")) for job in claimed.jobs], now=t.now)
    answer = await _redrive(t)
    expect.equal(list(answer.revived), [job.id for job in jobs], "1,200 dead letters are all redriven, oldest id first")


@redrive
async def those_who_redrive_at_once_do_not_stop_each_other(t: Trial) -> None:
    """Fewer than the limit means that nothing more matches, also where others redrive the same jobs meanwhile (E17)."""
    jobs = [t.new(f"n{number % 3}") for number in range(400)]
    await t.enqueue(*jobs)
    claimed = await t.claim(Demand(400), token="bulk")  # noqa: S106  # a claim's token is no password
    await t.store.finish([Ending(Claim(job.id, "bulk"), Dead("E: no")) for job in claimed.jobs], now=t.now)
    answers = await asyncio.gather(*(_redrive(t, limit=100) for _ in range(3)))
    expect.equal([len(one.revived) for one in answers], [100] * 3, "each of three callers redrives up to its limit")
    answers += await asyncio.gather(*(_redrive(t) for _ in range(3)))
    revived = sorted(job_id for one in answers for job_id in one.revived)
    expect.equal(revived, [job.id for job in jobs], "each dead letter is revived once, and none is left")


@redrive
async def a_dead_letter_whose_key_is_taken_is_dropped(t: Trial) -> None:
    """Where an unfinished job holds its dedupe key the dead letter is deleted and named; there is never a second (E17)."""
    key = Key("dedupe", "k")
    dead, other = await _dead_with(t, key), await _dead_with(t, key, "other")
    twin = await t.make.pending("job", key=key)
    answer = await _redrive(t)
    expect.equal(
        (list(answer.revived), list(answer.dropped)), ([other.id], [dead.id]), "the dead letter whose key is held is dropped"
    )
    expect.equal(await t.store.get([dead.id]), [], "a dropped dead letter is deleted")
    expect.same_job(await t.job(twin.id), twin, "the holder of the key is left alone")


@redrive
async def a_running_twin_holds_the_key_as_well(t: Trial) -> None:
    """A dead letter is dropped for a running job with its key too (E7, E17)."""
    key = Key("dedupe", "k")
    dead = await _dead_with(t, key)
    held = await t.make.running("job", key=key)
    answer = await _redrive(t, JobFilter(ids=[dead.id]))
    expect.equal((list(answer.revived), list(answer.dropped)), ([], [dead.id]), "a running job holds its dedupe key")
    expect.same_job(await t.job(held.job.id), held.job, "the running twin is left alone")


@redrive
async def of_twins_in_one_call_the_oldest_is_revived(t: Trial) -> None:
    """Two dead letters with one dedupe key in the same call: the older runs again, the younger is dropped (E17)."""
    key = Key("dedupe", "k")
    old, young, youngest = [await _dead_with(t, key) for _ in range(3)]
    alone = await _dead_with(t, Key("dedupe", "other"))
    answer = await _redrive(t)
    expect.equal(list(answer.revived), [old.id, alone.id], "of dead letters with one key the oldest is revived")
    expect.equal(sorted(answer.dropped), [young.id, youngest.id], "of dead letters with one key the younger are dropped")
    expect.equal(len(await t.everything()), 2, "dropped dead letters are deleted")


@redrive
async def a_redriven_job_holds_its_dedupe_key_again(t: Trial) -> None:
    """After a redrive the key is held, so that enqueueing with it finds the revived job (E7, E17)."""
    key = Key("dedupe", "k")
    dead = await _dead_with(t, key)
    await _redrive(t)
    [answer] = await t.enqueue(t.new("job", key=key))
    expect.equal((answer.id, answer.created), (dead.id, False), "a redriven job holds its dedupe key again")


@redrive
async def idempotency_keys_never_drop_a_dead_letter(t: Trial) -> None:
    """An idempotency key is held by the dead letter itself, so it is simply redriven (E6, E17)."""
    key = Key("idempotency", "k")
    dead = await _dead_with(t, key)
    answer = await _redrive(t)
    expect.equal((list(answer.revived), list(answer.dropped)), ([dead.id], []), "a dead letter is no twin of itself")
    expect.equal((await t.job(dead.id)).key, key, "an idempotency key stays through a redrive")


@redrive
async def a_schedule_key_is_cleared(t: Trial) -> None:
    """A redriven firing holds no schedule key, so it blocks no later firing, nor is it dropped for one (T11)."""
    key = Key("schedule", "every:job")
    old = await t.make.dead("job", key=key, schedule="every:job")
    next_one = await t.make.pending("job", key=key, schedule="every:job", delay=60.0)
    answer = await _redrive(t)
    expect.equal((list(answer.revived), list(answer.dropped)), ([old.id], []), "a dead firing is revived beside the next one")
    revived = await t.job(old.id)
    expect.equal((revived.key, revived.schedule), (None, "every:job"), "the schedule key is cleared, the schedule's name stays")
    await t.store.delete(JobFilter(ids=[next_one.id]), now=t.now)
    [answer_] = await t.enqueue(t.new("job", key=key))
    expect.that(answer_.created, "a redriven firing does not hold the schedule key")


@redrive
async def a_limit_counts_what_is_dropped_too(t: Trial) -> None:
    """A limit bounds the dead letters that one call looks at, dropped ones among them (E17)."""
    key = Key("dedupe", "k")
    for _ in range(4):
        await _dead_with(t, key)
    answer = await _redrive(t, limit=3)
    expect.equal((len(answer.revived), len(answer.dropped)), (1, 2), "limit=3 handles three dead letters, revived or dropped")
    expect.equal(
        await t.store.count(JobFilter(states=frozenset({State.DEAD})), now=t.now), 1, "the rest is left for the next call"
    )
