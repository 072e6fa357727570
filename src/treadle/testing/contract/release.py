"""Releasing: a job given back unfinished has its attempt refunded, and interruptions are counted apart (E24, P8)."""

from __future__ import annotations

from treadle.core.job import State
from treadle.core.outcome import Done, Released, RetryAfter
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

release = Group[Trial]("release")


@release
async def the_attempt_is_refunded(t: Trial) -> None:
    """A released job runs again with the same attempt number (E24)."""
    job = await t.make.pending()
    for _ in range(3):
        held = await t.hold(job.id)
        expect.equal(held.job.attempts, 1, "a job that is released each time is at its first attempt each time")
        released = await t.end(held, Released())
        expect.equal(released.attempts, 0, "a release gives the attempt back")


@release
async def only_this_attempt_is_refunded(t: Trial) -> None:
    """Earlier failures stay counted when a later attempt is given back (E24)."""
    job = await t.make.pending()
    await t.end(await t.hold(job.id), RetryAfter(0.0, "E: no"))
    released = await t.end(await t.hold(job.id), Released(0.0, True))
    expect.equal(
        (released.attempts, released.last_error), (1, "E: no"), "a release refunds one attempt and keeps the last error"
    )


@release
async def interruptions_are_counted(t: Trial) -> None:
    """Each interrupted release counts one interruption, however the attempts went (E24)."""
    job = await t.make.pending()
    for number in (1, 2, 3):
        released = await t.end(await t.hold(job.id), Released(0.0, True))
        expect.equal(released.interruptions, number, "an interruption is counted")
    held = await t.hold(job.id)
    expect.equal(held.job.interruptions, 3, "a claim answers the interruptions so far")
    done = await t.end(held, Done())
    expect.equal(done.interruptions, 3, "success leaves the interruptions as they are")


@release
async def a_snooze_is_no_interruption(t: Trial) -> None:
    """A release with a delay that is not marked as interrupted leaves the count alone (E14)."""
    job = await t.make.pending()
    released = await t.end(await t.hold(job.id), Released(30.0))
    expect.equal((released.interruptions, released.run_at), (0, t.at(30.0)), "a snooze is due after its delay, not interrupted")
    expect.same_ids(await t.claimable(), [], "a snoozed job is not claimed before its time")
    t.advance(30)
    expect.same_ids(await t.claimable(), [released], "a snoozed job is claimed at its time")


@release
async def a_released_job_keeps_its_place(t: Trial) -> None:
    """Priority, name, queue, payload and key of a released job are as before (E24)."""
    job = await t.make.pending("a", [1], priority=3, queue="q", dedupe_key="k")
    released = await t.end(await t.hold(job.id), Released(0.0, True))
    expect.same_job(
        released,
        job,
        "a released job is as it was before its claim",
        but={"interruptions", "max_attempts", "started_at", "run_at"},
    )
    expect.equal(released.state, State.PENDING, "a released job is pending")
