"""Enqueueing: what is stored, what is answered, and that repeating it is safe (E1, E4, E9)."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.job import Key, State
from treadle.core.payload import encode
from treadle.core.store import Demand
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial, pending
from treadle.testing.suite import Group

enqueue = Group[Trial]("enqueue")


@enqueue
async def a_job_is_stored_as_it_was_given(t: Trial) -> None:
    """Every field of a new job is stored as given, and the others have their first values (E1)."""
    job = t.new(
        "welcome-email",
        {"email": "ada@example.com"},
        queue="mails",
        run_at=t.at(90),
        priority=-7,
        max_attempts=3,
        key=Key("idempotency", "welcome:1"),
        schedule="every:welcome-email",
    )
    [answer] = await t.enqueue(job)
    expect.equal((answer.id, answer.created), (job.id, True), "a new job is answered with its own id and created=True")
    expect.same_job(answer.job, pending(job, t.now), "enqueue answers the job as it is stored")
    expect.same_job(await t.job(job.id), pending(job, t.now), "get answers the job as it was enqueued")


@enqueue
async def defaults_are_due_at_once(t: Trial) -> None:
    """A job without delay or run_at is pending, due at the moment of its enqueue, with priority 0 and no attempts (E1, E4)."""
    job = await t.make.pending()
    expect.equal(job.state, State.PENDING, "a new job is pending")
    expect.equal(job.run_at, t.now, "a job without delay or run_at is due now")
    expect.equal(job.created_at, t.now, "created_at is the moment of the enqueue")
    expect.equal((job.queue, job.priority, job.attempts, job.interruptions), ("default", 0, 0, 0), "the defaults of E1 hold")
    expect.equal(job.max_attempts, None, "max_attempts left out stays None until the first claim (E4)")
    expect.equal(
        (job.started_at, job.finished_at, job.last_error, job.worker, job.lease_until, job.note, tuple(job.failures)),
        (None, None, None, None, None, None, ()),
        "a job that never ran has no start, end, error, worker, lease, note or failures",
    )


@enqueue
async def a_delay_counts_from_the_moment_of_the_enqueue(t: Trial) -> None:
    """A delay is added to the store's now (E4)."""
    job = await t.make.pending(delay=90.25)
    expect.equal(job.run_at, t.at(90.25), "a job with a delay of 90.25 s is due 90.25 s after now")


@enqueue
async def run_at_is_kept_whatever_the_moment(t: Trial) -> None:
    """A given run_at is stored as it is, in the past too (E4)."""
    for seconds in (-86_400.0, 0.0, 86_400.0):
        job = await t.make.pending(run_at=t.at(seconds))
        expect.equal(job.run_at, t.at(seconds), f"a run_at {seconds:+,.0f} s from now is stored as given")


@enqueue
async def a_batch_is_answered_in_its_order(t: Trial) -> None:
    """Each job of a batch is answered in its place, whatever its id, queue and name (E9)."""
    jobs = [t.new(f"job-{number % 7}", number, queue=f"q{number % 3}", priority=number % 5) for number in range(50)]
    jobs = jobs[1::2] + jobs[48::-2]
    answers = await t.enqueue(*jobs)
    expect.equal(
        [one.id for one in answers], [job.id for job in jobs], "a batch is answered in the order in which it was given"
    )
    for answer, job in zip(answers, jobs, strict=True):
        expect.that(answer.created, "every new job of a batch is answered with created=True")
        expect.same_job(answer.job, pending(job, t.now), "each job of a batch is answered as it is stored")


@enqueue
async def an_empty_batch_is_no_work(t: Trial) -> None:
    """An empty batch is answered with nothing and stores nothing."""
    expect.equal(await t.store.enqueue([], now=t.now), [], "enqueueing nothing answers an empty list")
    expect.equal(await t.everything(), [], "enqueueing nothing stores nothing")


@enqueue
async def repeating_a_batch_stores_nothing_twice(t: Trial) -> None:
    """A batch that is enqueued again, since its answer was lost, answers the same ids and changes nothing (E9)."""
    jobs = [t.new("a"), t.new("b", idempotency_key="k"), t.new("c", dedupe_key="k"), t.new("d", delay=60.0)]
    await t.enqueue(*jobs)
    before = await t.everything()
    t.advance(5)
    again = await t.enqueue(*jobs)
    expect.equal([one.id for one in again], [job.id for job in jobs], "a repeated batch is answered with the same ids")
    for answer in again:
        expect.same_job(answer.job, await t.job(answer.id), "a repeated enqueue answers the job as it is stored")
    await t.unchanged(before, "a repeated enqueue changes nothing")


@enqueue
async def a_batch_may_be_repeated_in_part(t: Trial) -> None:
    """A batch of which some jobs are stored already stores the others and leaves those alone (E9)."""
    first, second, third = t.new("a"), t.new("b"), t.new("c")
    await t.enqueue(second)
    t.advance(1)
    answers = await t.enqueue(first, second, third)
    expect.equal([one.created for one in answers], [True, False, True], "only jobs that were not stored are created")
    expect.equal((await t.job(second.id)).created_at, t.at(-1), "the job that was stored already keeps its created_at")


@enqueue
async def a_held_id_is_answered_with_its_holder(t: Trial) -> None:
    """A job whose id is stored is answered with the stored job, in whatever state, and overwrites nothing (E9)."""
    jobs = [
        await t.make.pending("a", "old"),
        (await t.make.running("b", "old")).job,
        await t.make.done("c", "old"),
        await t.make.dead("d", "old"),
    ]
    before = await t.everything()
    t.advance(1)
    for job in jobs:
        [answer] = await t.enqueue(t.new("other", "new", id=job.id, priority=9, queue="elsewhere"))
        expect.equal((answer.id, answer.created), (job.id, False), f"an id held by a {job.state} job is answered with that job")
        expect.same_job(answer.job, job, "the holder is answered as it is stored", but={"failures"})
    await t.unchanged(before, "a job whose id is held overwrites nothing")


@enqueue
async def one_id_twice_in_a_batch_is_one_job(t: Trial) -> None:
    """Of two jobs with one id in a batch the first is stored, and answers both."""
    job = t.new("a", 1)
    answers = await t.enqueue(job, replace(job, payload_json=encode(2)))
    expect.equal([one.created for one in answers], [True, False], "the second job with the same id is not created")
    expect.same_job(answers[1].job, pending(job, t.now), "the second job with the same id is answered with the first")
    expect.equal(len(await t.everything()), 1, "two jobs with one id are stored as one")


@enqueue
async def a_large_batch_is_stored_whole(t: Trial) -> None:
    """5,000 jobs go in with one call, and each is answered and stored (E9)."""
    jobs = [t.new(f"job-{number % 10}", {"number": number}, priority=number % 3) for number in range(5000)]
    answers = await t.enqueue(*jobs)
    expect.equal([one.id for one in answers], [job.id for job in jobs], "5,000 jobs are answered in their order")
    expect.that(all(one.created for one in answers), "5,000 new jobs are all created")
    stats = await t.store.stats(now=t.now)
    expect.equal(stats.pending, 5000, "5,000 jobs enqueued in one call are stored")
    expect.same_job(await t.job(jobs[4321].id), pending(jobs[4321], t.now), "a job of a large batch is stored as given")


@enqueue
async def the_stores_own_clock_decides_without_now(t: Trial) -> None:
    """With now=None the store's own clock dates the job, and finds it due at once (S9)."""
    early, later = t.new("early"), t.new("later", delay=3600.0)
    answers = await t.store.enqueue([early, later])
    created = answers[0].job.created_at
    expect.equal(answers[0].job.run_at, created, "without a delay run_at is the store's own now")
    expect.equal((answers[1].job.run_at - created).total_seconds(), 3600.0, "a delay counts from the store's own now")
    expect.that(created.utcoffset() is not None, "the store's own moments are aware", created)
    claimed = await t.store.claim(t.make.token(), [Demand(10)], worker="w", lease=60.0)
    expect.equal([job.id for job in claimed.jobs], [early.id], "the store's own clock finds a job due that has no delay")
