"""Leases: renewing, expiring, and taking back only what is still expired (E20, E21)."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.job import Failure, State
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.store import Claim, Demand, Expired, Reclaim
from treadle.core.transitions import LEASE_EXPIRED, on_expired
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.factory import LEASE, WORKER, Held
from treadle.testing.suite import Group

leases = Group[Trial]("leases")


@leases
async def renewing_leases_from_now(t: Trial) -> None:
    """A renewed lease ends the given seconds after the moment of renewal, and nothing else changes (E20)."""
    held = await t.make.running()
    t.advance(45)
    expect.equal(await t.store.renew([held.claim], 30.0, now=t.now), {held.claim}, "renew answers the claim that held")
    renewed = replace(held.job, lease_until=t.at(30.0))
    expect.same_job(await t.job(held.job.id), renewed, "renewing changes lease_until alone")


@leases
async def renewing_answers_only_what_holds(t: Trial) -> None:
    """Of many claims those that hold are renewed and answered, the others are neither (E20, E22)."""
    first, second, ended = await t.make.running("a"), await t.make.running("b"), await t.make.running("c")
    await t.end(ended, Done())
    wrong = Claim(second.claim.id, first.claim.token)
    t.advance(10)
    took = await t.store.renew([first.claim, wrong, ended.claim, Claim(t.make.id(), "t")], 60.0, now=t.now)
    expect.equal(took, {first.claim}, "renew answers the claims that hold and no others")
    expect.equal((await t.job(second.job.id)).lease_until, second.job.lease_until, "a wrong token renews nothing")
    expect.equal(await t.store.renew([], 60.0, now=t.now), set(), "renewing nothing answers nothing")


@leases
async def a_renewed_job_does_not_expire(t: Trial) -> None:
    """A lease that is renewed in time keeps its job from expiring, as long as it goes on (E20)."""
    held = await t.make.running()
    for _ in range(3):
        t.advance(LEASE - 1)
        await t.store.renew([held.claim], LEASE, now=t.now)
    expect.equal(list(await t.store.expired(10, now=t.now)), [], "a renewed job does not expire")
    t.advance(LEASE + 1)
    expired = expect.one(await t.store.expired(10, now=t.now), "expired answers the one running job whose lease is past")
    expect.equal(expired.claim, held.claim, "a job that is renewed no longer expires")


@leases
async def a_lease_that_is_past_can_be_renewed_until_it_is_reclaimed(t: Trial) -> None:
    """A worker that comes back late, before anyone took its job, holds it again (E20, E21)."""
    held = await t.make.expired()
    expect.equal(await t.store.renew([held.claim], LEASE, now=t.now), {held.claim}, "a claim holds until its job is reclaimed")
    expect.equal(list(await t.store.expired(10, now=t.now)), [], "a renewed lease is no longer past")


@leases
async def only_running_jobs_with_a_past_lease_are_expired(t: Trial) -> None:
    """Expired answers each of them with its claim and leaves out pending, ended and freshly leased jobs (E21)."""
    old = await t.make.running("old")
    await t.make.done("done")
    await t.make.dead("dead")
    await t.make.pending("waiting")
    t.advance(LEASE + 1)
    await t.make.running("fresh")
    expired = list(await t.store.expired(10, now=t.now))
    expect.equal([one.claim for one in expired], [old.claim], "only a running job whose lease is past is expired")
    expect.same_job(expired[0].job, old.job, "expired answers the job as it is stored", but={"failures"})


@leases
async def a_lease_is_past_from_its_very_end_on(t: Trial) -> None:
    """At lease_until, and not a microsecond before, a lease is past (E21)."""
    held = await t.make.running()
    t.advance(LEASE - 0.000001)
    expect.equal(list(await t.store.expired(10, now=t.now)), [], "a lease is not past a microsecond before its end")
    t.advance(0.000001)
    expired = expect.one(await t.store.expired(10, now=t.now), "expired answers the one running job whose lease is past")
    expect.equal(expired.claim, held.claim, "a lease is past at the moment of its end")
    expect.that(await t.reclaim(Reclaim(expired, RetryAfter(0.0, "E"))), "and can be reclaimed in that moment")


@leases
async def expired_looks_at_every_queue_and_name_longest_past_first(t: Trial) -> None:
    """Any worker finds expired jobs of all queues and names, the longest past first, up to the limit (E21)."""
    held = []
    for number, queue in enumerate(("default", "plugin:mail", "functions", "q")):
        held.append(await t.make.running(f"n{number}", queue=queue))
        t.advance(1)
    t.advance(LEASE)
    expired = await t.store.expired(10, now=t.now)
    expect.equal([one.claim for one in expired], [one.claim for one in held], "expired answers the longest past first")
    expired = await t.store.expired(2, now=t.now)
    expect.equal([one.claim for one in expired], [one.claim for one in held[:2]], "expired answers no more than its limit")


async def _expired(t: Trial, **options: int) -> tuple[Held, Expired]:
    held = await t.make.running(max_attempts=options.get("max_attempts", 3))
    t.advance(LEASE + 1)
    expired = expect.one(await t.store.expired(10, now=t.now), "expired answers the one running job whose lease is past")
    return held, expired


@leases
async def a_reclaimed_job_is_claimable_again(t: Trial) -> None:
    """An expired job with attempts left is pending and due at once, its attempt spent (E21)."""
    held, expired = await _expired(t)
    took = await t.store.reclaim([Reclaim(expired, on_expired(expired.job))], now=t.now)
    expect.equal(took, {held.claim}, "reclaim answers the claims that it took back")
    failure = Failure(1, WORKER, held.job.started_at or t.now, t.now, LEASE_EXPIRED)
    back = replace(
        held.job,
        state=State.PENDING,
        run_at=t.now,
        last_error=LEASE_EXPIRED,
        worker=None,
        lease_until=None,
        failures=(failure,),
    )
    expect.same_job(await t.job(held.job.id), back, "a reclaimed job is pending, due now")
    again = await t.hold(held.job.id)
    expect.equal(again.job.attempts, 2, "the lost attempt counts")


@leases
async def the_last_attempt_that_expires_is_dead(t: Trial) -> None:
    """What is decided, the store applies: an expired job without attempts left becomes a dead letter (E21)."""
    held, expired = await _expired(t, max_attempts=1)
    outcome = on_expired(expired.job)
    expect.equal(outcome, Dead(LEASE_EXPIRED), "expired answers attempts and max_attempts, by which the outcome is decided")
    await t.reclaim(Reclaim(expired, outcome))
    job = await t.job(held.job.id)
    expect.equal((job.state, job.last_error, job.finished_at), (State.DEAD, LEASE_EXPIRED, t.now), "the job is dead now")


@leases
async def a_lease_that_was_renewed_meanwhile_is_not_reclaimed(t: Trial) -> None:
    """Between looking and taking back the worker renewed: its job is left to it (E21)."""
    held, expired = await _expired(t)
    await t.store.renew([held.claim], LEASE, now=t.now)
    renewed = await t.everything()
    expect.that(not await t.reclaim(Reclaim(expired, Dead("E"))), "a lease that was renewed is not reclaimed")
    await t.unchanged(renewed, "a refused reclaim changes nothing")
    t.advance(LEASE + 1)
    expect.that(not await t.reclaim(Reclaim(expired, Dead("E"))), "a lease that was renewed and ran out again is another lease")
    await t.unchanged(renewed, "a refused reclaim changes nothing")
    anew = expect.one(await t.store.expired(10, now=t.now), "expired answers the job again, its lease having run out anew")
    expect.that(await t.reclaim(Reclaim(anew, RetryAfter(0.0, "E"))), "looked at anew, it is reclaimed")


@leases
async def a_lease_that_is_not_past_is_not_reclaimed(t: Trial) -> None:
    """A reclaimer whose own clock runs ahead takes nothing: the store's now decides (E21, S9)."""
    held = await t.make.running()
    ahead = expect.one(await t.store.expired(10, now=t.at(LEASE + 1)), "the lease is past by a clock ahead")
    expect.that(not await t.reclaim(Reclaim(ahead, Dead("E"))), "a lease that is not past is not reclaimed")
    expect.same_job(await t.job(held.job.id), held.job, "a refused reclaim changes nothing")


@leases
async def an_attempt_is_reclaimed_once(t: Trial) -> None:
    """Of several reclaimers that saw the same expired job one takes it (E21)."""
    held, expired = await _expired(t)
    expect.that(await t.reclaim(Reclaim(expired, RetryAfter(0.0, "E: one"))), "the first reclaimer takes the job")
    after = await t.everything()
    expect.that(not await t.reclaim(Reclaim(expired, RetryAfter(0.0, "E: two"))), "the second reclaimer takes nothing")
    await t.unchanged(after, "a second reclaim changes nothing")
    await t.hold(held.job.id)
    expect.that(not await t.reclaim(Reclaim(expired, Dead("E: late"))), "nor does it take the next attempt")


@leases
async def a_job_that_ended_meanwhile_is_not_reclaimed(t: Trial) -> None:
    """Done is final: a reclaimer that looked before the result came changes nothing (E21)."""
    for outcome in (Done(), Dead("E: no"), RetryAfter(0.0, "E: no"), Released()):
        held, expired = await _expired(t)
        await t.end(held, outcome)
        after = await t.everything()
        expect.that(not await t.reclaim(Reclaim(expired, Dead("E: late"))), f"after {outcome} nothing is reclaimed")
        await t.unchanged(after, f"a reclaim after {outcome} changes nothing")
        if (await t.job(held.job.id)).state is State.PENDING:
            await t.end(await t.hold(held.job.id), Done())


@leases
async def a_reclaim_may_give_the_attempt_back(t: Trial) -> None:
    """The outcome is the engine's to decide: a released job gets its attempt back by reclaiming too (P8)."""
    held, expired = await _expired(t)
    await t.reclaim(Reclaim(expired, Released(0.0, True)))
    job = await t.job(held.job.id)
    expect.equal((job.state, job.attempts, job.interruptions), (State.PENDING, 0, 1), "reclaim applies Released like finish")


@leases
async def reclaiming_many_takes_those_that_still_are_expired(t: Trial) -> None:
    """One call takes back what it may and leaves the rest (E21)."""
    held = [await t.make.running(f"n{number}", max_attempts=1 + number % 2) for number in range(10)]
    t.advance(LEASE + 1)
    expired = await t.store.expired(100, now=t.now)
    await t.store.renew([held[3].claim], LEASE, now=t.now)
    await t.end(held[4], Done())
    took = await t.store.reclaim([Reclaim(one, on_expired(one.job)) for one in expired], now=t.now)
    expected = {one.claim for number, one in enumerate(held) if number not in (3, 4)}
    expect.equal(took, expected, "reclaim answers the claims that were taken back")
    for number, one in enumerate(held):
        state = State.RUNNING if number == 3 else State.DONE if number == 4 else State.PENDING if number % 2 else State.DEAD
        expect.equal((await t.job(one.job.id)).state, state, "each expired job becomes what was decided for it")
    expect.equal(await t.store.reclaim([], now=t.now), set(), "reclaiming nothing answers nothing")


@leases
async def the_stores_own_clock_ends_no_fresh_lease(t: Trial) -> None:
    """With now=None a job that was just claimed is not expired, and renewing it counts from the store's now (S9)."""
    job = t.new()
    await t.store.enqueue([job])
    claimed = await t.store.claim("token-1", [Demand(1)], worker="w", lease=60.0)
    expect.equal(list(await t.store.expired(10)), [], "a fresh lease is not past by the store's own clock")
    await t.store.renew([Claim(job.id, "token-1")], 600.0)
    renewed = (await t.job(job.id)).lease_until
    first = claimed.jobs[0].lease_until
    expect.that(
        renewed is not None and first is not None and (renewed - first).total_seconds() >= 540, "renewing counts from now"
    )
