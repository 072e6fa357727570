"""Times: kept to the microsecond, from the past to the year 9999, always aware and in UTC (E1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from treadle.core.outcome import Done, Released, RetryAfter
from treadle.core.policies.limits import FAR_FUTURE
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

times = Group[Trial]("times")


@times
async def the_far_future_is_exact(t: Trial) -> None:
    """run_at may be the last second, and the last microsecond, of the year 9999 (E4)."""
    for moment in (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), FAR_FUTURE):
        job = await t.make.pending("far", run_at=moment)
        expect.equal(job.run_at, moment, "a run_at at the end of the year 9999 is answered exactly")
        expect.equal((await t.job(job.id)).run_at, moment, "a run_at at the end of the year 9999 is stored exactly")
    soon = await t.make.pending("soon")
    claimed = await t.claimable()
    expect.same_ids(claimed, [soon], "a job of the far future keeps no other from being claimed, and is not claimed itself")


@times
async def the_past_is_exact(t: Trial) -> None:
    """run_at may lie before 1970, and goes first then (E28)."""
    now = await t.make.pending("now")
    before = await t.make.pending("1969", run_at=datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))
    long_ago = await t.make.pending("1900", run_at=datetime(1900, 1, 1, tzinfo=UTC))
    expect.equal((await t.job(before.id)).run_at, before.run_at, "a run_at a microsecond before 1970 is stored exactly")
    expect.same_ids(await t.claimable(), [long_ago, before, now], "the longest due job goes first, before 1970 too")


@times
async def microseconds_are_kept_and_count(t: Trial) -> None:
    """Two moments a microsecond apart are told apart, in storing and in claiming (E28)."""
    late = await t.make.pending("late", run_at=t.at(0.000002))
    early = await t.make.pending("early", run_at=t.at(0.000001))
    expect.equal((await t.job(late.id)).run_at, t.at(0.000002), "microseconds of run_at are kept")
    expect.same_ids(await t.claimable(), [], "neither is due yet")
    t.advance(0.000001)
    expect.same_ids(await t.claimable(), [early], "the first is due a microsecond later")
    t.advance(0.000001)
    expect.same_ids(await t.claimable(), [late], "the second is due after one more")


@times
async def every_moment_of_a_life_is_kept_to_the_microsecond(t: Trial) -> None:
    """created_at, started_at, lease_until, ended_at and finished_at are the moments that were given (E1)."""
    t.advance(0.123457)
    job = await t.make.pending()
    expect.equal((await t.job(job.id)).created_at, t.now, "created_at is exact")
    t.advance(0.000001)
    held = await t.hold(job.id)
    started = t.now
    expect.equal((held.job.started_at, held.job.lease_until), (started, t.at(60.0)), "started_at and lease_until are exact")
    t.advance(0.654321)
    failed = await t.end(held, RetryAfter(0.25, "E"))
    expect.equal(
        (failed.failures[0].started_at, failed.failures[0].ended_at, failed.run_at),
        (started, t.now, t.at(0.25)),
        "a failure's moments are exact",
    )
    t.advance(0.25)
    done = await t.end(await t.hold(job.id), Done())
    expect.equal(done.finished_at, t.now, "finished_at is exact")


@times
async def all_moments_are_aware_and_in_utc(t: Trial) -> None:
    """Whatever zone a moment is given in, it is answered in UTC (E1)."""
    zone = timezone(timedelta(hours=5, minutes=45))
    job = await t.make.pending(run_at=t.now.astimezone(zone))
    held = await t.hold(job.id)
    failed = await t.end(held, RetryAfter(0.0, "E"))
    done = await t.end(await t.hold(job.id), Done())
    moments = (
        job.run_at,
        job.created_at,
        held.job.started_at,
        held.job.lease_until,
        failed.failures[0].ended_at,
        done.finished_at,
    )
    for moment in moments:
        expect.that(moment is not None and moment.utcoffset() == timedelta(0), "every moment is aware and in UTC", moment)
    expect.equal(job.run_at, t.now, "a moment given in another zone is the same moment")


@times
async def delays_of_any_size_are_exact(t: Trial) -> None:
    """Thirty days are thirty times 86,400 seconds, and a fraction of a second is kept (E4)."""
    for delay in (2_592_000.0, 0.001, 0.5, 86_400.75, 100_000_000_000.0):
        job = await t.make.pending("far", delay=delay)
        expect.equal(job.run_at, t.at(delay), f"a delay of {delay:,} s is exact")


@times
async def delays_are_elapsed_time(t: Trial) -> None:
    """A delay across a change of the clocks is so many real seconds (T8, E4)."""
    t.advance((datetime(2026, 3, 29, 0, 30, tzinfo=UTC) - t.now).total_seconds())
    job = await t.make.pending(delay=7200.0)
    expect.equal(job.run_at, datetime(2026, 3, 29, 2, 30, tzinfo=UTC), "7,200 s after 00:30Z is 02:30Z, whatever the zone")


@times
async def retry_delays_are_exact(t: Trial) -> None:
    """A retry or release after milliseconds or months is due exactly then (E16)."""
    job = await t.make.pending()
    for outcome in (RetryAfter(0.001, "E"), RetryAfter(900.0, "E"), Released(0.125), Released(7_776_000.0)):
        ended = await t.end(await t.hold(job.id), outcome)
        expect.equal(ended.run_at, t.at(outcome.seconds), f"after {outcome} the job is due exactly then")
        t.advance(outcome.seconds)


@times
async def an_endless_delay_ends_with_the_calendar(t: Trial) -> None:
    """A delay that leaves the year 9999 is held at its end, not refused halfway or wrapped round (E4)."""
    job = await t.make.pending(delay=200_000_000_000.0)
    expect.equal(job.run_at, t.at(200_000_000_000.0), "200,000,000,000 s from 2026 is still within the calendar")
    t.advance(200_000_000_000.0)
    job = await t.make.pending("later", delay=200_000_000_000.0)
    expect.equal(job.run_at, FAR_FUTURE, "a delay beyond the year 9999 is held at its last moment")
    expect.equal((await t.job(job.id)).run_at, FAR_FUTURE, "and is stored so")
