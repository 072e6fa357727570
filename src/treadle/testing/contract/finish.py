"""Finishing: what each outcome makes of a job whose claim holds (E2, E15, E24)."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.job import Failure, State
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.store import Claim, Demand, Ending
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.factory import WORKER
from treadle.testing.suite import Group

finish = Group[Trial]("finish")


@finish
async def done_ends_the_job(t: Trial) -> None:
    """Done: the job is done at that moment, without a lease or an error (E2)."""
    held = await t.make.running()
    t.advance(2)
    job = await t.end(held, Done())
    done = replace(held.job, state=State.DONE, finished_at=t.now, worker=None, lease_until=None)
    expect.same_job(job, done, "a job that succeeded is done, and has no worker or lease any more")


@finish
async def done_keeps_the_note(t: Trial) -> None:
    """A note given with Done is kept on the job, whatever characters it has."""
    job = await t.end(await t.make.running(), Done("404 Not Found: é \U0001f600"))
    expect.equal(job.note, "404 Not Found: é \U0001f600", "the note of Done is kept")
    expect.equal((await t.end(await t.make.running(), Done())).note, None, "Done without a note leaves none")


@finish
async def a_failure_with_attempts_left_waits_for_its_next_try(t: Trial) -> None:
    """RetryAfter: pending again, due that many seconds after the store's now, with the error kept (E2, E16)."""
    held = await t.make.running()
    t.advance(2)
    job = await t.end(held, RetryAfter(8.5, "ValueError: no"))
    failure = Failure(1, WORKER, held.job.started_at or t.now, t.now, "ValueError: no")
    waiting = replace(
        held.job,
        state=State.PENDING,
        run_at=t.at(8.5),
        last_error="ValueError: no",
        lease_until=None,
        worker=None,
        failures=(failure,),
    )
    expect.same_job(job, waiting, "a failed job with attempts left is pending again, started_at telling of its last attempt")
    expect.same_ids(await t.claimable(), [], "a failed job is not claimed before its delay is over")
    t.advance(8.5)
    expect.same_ids(await t.claimable(), [job], "a failed job is claimed when its delay is over")


@finish
async def a_failure_without_attempts_left_is_a_dead_letter(t: Trial) -> None:
    """Dead: the job is dead at that moment, with its last error and the record of the attempt (E15, E17)."""
    held = await t.make.running()
    t.advance(2)
    job = await t.end(held, Dead("ValueError: no"))
    failure = Failure(1, WORKER, held.job.started_at or t.now, t.now, "ValueError: no")
    dead = replace(
        held.job,
        state=State.DEAD,
        finished_at=t.now,
        last_error="ValueError: no",
        worker=None,
        lease_until=None,
        failures=(failure,),
    )
    expect.same_job(job, dead, "a job that failed for good is dead, and has no worker or lease any more")


@finish
async def a_release_gives_the_attempt_back(t: Trial) -> None:
    """Released: pending again with the attempt refunded, and no failure recorded (E24)."""
    held = await t.make.running()
    t.advance(2)
    job = await t.end(held, Released(5.0))
    released = replace(held.job, state=State.PENDING, attempts=0, run_at=t.at(5.0), lease_until=None, worker=None)
    expect.same_job(job, released, "a released job is pending with its attempt refunded, started_at telling of its last start")


@finish
async def done_after_failures_keeps_their_records(t: Trial) -> None:
    """A job that succeeds at a later attempt is done, and what failed before can still be read (E15)."""
    job = await t.make.pending()
    await t.end(await t.hold(job.id), RetryAfter(0.0, "E: first"))
    done = await t.end(await t.hold(job.id), Done())
    expect.equal((done.state, done.attempts), (State.DONE, 2), "a job that succeeds at its second attempt is done")
    expect.equal([failure.error for failure in done.failures], ["E: first"], "the failed attempt stays on record")


@finish
async def a_batch_applies_each_outcome_to_its_own_job(t: Trial) -> None:
    """One call with many claims and outcomes ends each as it says, and answers all (E27)."""
    outcomes: list[Outcome] = [Done(), RetryAfter(10.0, "E: retry"), Dead("E: dead"), Released(20.0, True), Done("note")]
    held = [await t.make.running(f"n{number}") for number in range(20)]
    endings = [Ending(one.claim, outcomes[number % 5]) for number, one in enumerate(held)]
    took = await t.store.finish(endings, now=t.now)
    expect.equal(took, {one.claim for one in held}, "finish answers every claim that held")
    states = (State.DONE, State.PENDING, State.DEAD, State.PENDING, State.DONE)
    for number, one in enumerate(held):
        job = await t.job(one.claim.id)
        expect.equal(job.state, states[number % 5], f"{outcomes[number % 5]} was applied to its own job")
        expect.equal(job.last_error, {1: "E: retry", 2: "E: dead"}.get(number % 5), "each failed job has its own error")
        expect.equal(job.note, "note" if number % 5 == 4 else None, "each done job has its own note")


@finish
async def a_batch_applies_what_holds_and_leaves_the_rest(t: Trial) -> None:
    """Claims of a batch that no longer hold change nothing and keep the others from nothing (E22)."""
    good, bad = await t.make.running("good"), await t.make.running("bad")
    wrong = Claim(bad.claim.id, "another-token")
    unknown = Claim(t.make.id(), good.claim.token)
    took = await t.store.finish([Ending(wrong, Done()), Ending(good.claim, Done()), Ending(unknown, Done())], now=t.now)
    expect.equal(took, {good.claim}, "finish answers only the claims that held")
    expect.equal((await t.job(good.claim.id)).state, State.DONE, "the claim that held is finished")
    expect.same_job(await t.job(bad.claim.id), bad.job, "the claim that did not hold changes nothing")


@finish
async def an_empty_batch_is_no_work(t: Trial) -> None:
    """Finishing nothing answers nothing."""
    expect.equal(await t.store.finish([], now=t.now), set(), "finish of nothing answers nothing")


@finish
async def an_error_text_is_kept_as_it_is(t: Trial) -> None:
    """last_error may have 500 code points of any kind, quotes, line ends and emoji among them (E15)."""
    text = ("E: é'\"\\\n\t%s {} $1 \U0001f600 " * 40)[:500]
    held = await t.make.running()
    job = await t.end(held, Dead(text))
    expect.equal(job.last_error, text, "an error text of 500 code points is kept whole")
    expect.equal(job.failures[0].error, text, "the record of the attempt has the same text")


@finish
async def a_zero_delay_is_due_at_once(t: Trial) -> None:
    """A retry or a release without a delay can be claimed in the same moment."""
    job = await t.make.pending()
    outcomes: tuple[Outcome, ...] = (RetryAfter(0.0, "E: no"), Released())
    for outcome in outcomes:
        await t.end(await t.hold(job.id), outcome)
        expect.equal((await t.job(job.id)).run_at, t.now, f"after {outcome} the job is due at once")
    await t.hold(job.id)


@finish
async def the_stores_own_clock_dates_the_end(t: Trial) -> None:
    """With now=None the store's own clock dates the end and the next try (S9)."""
    a, b = t.new("a"), t.new("b")
    await t.store.enqueue([a, b])
    await t.store.claim("token-1", [Demand(2)], worker="w", lease=60.0)
    await t.store.finish([Ending(Claim(a.id, "token-1"), Done()), Ending(Claim(b.id, "token-1"), RetryAfter(60.0, "E: no"))])
    done, waiting = await t.store.get([a.id, b.id])
    expect.that(
        done.finished_at is not None and done.started_at is not None and done.finished_at >= done.started_at,
        "finished_at comes from the store's own clock, not before started_at",
        done.finished_at,
    )
    expect.equal(
        (waiting.run_at - waiting.failures[0].ended_at).total_seconds(), 60.0, "the next try is due a minute after the failure"
    )
