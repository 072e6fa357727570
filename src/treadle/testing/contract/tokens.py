"""Tokens: a claim that no longer holds changes nothing, and a lost answer can be asked for again (E21, E22)."""

from __future__ import annotations

from treadle.core.job import State
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.store import Claim, Demand, Reclaim
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

tokens = Group[Trial]("tokens")

OUTCOMES: tuple[Outcome, ...] = (Done("late"), RetryAfter(0.0, "E: late"), Dead("E: late"), Released(0.0, True))


async def _refused(t: Trial, claim: Claim, words: str) -> None:
    """Neither finishing with any outcome nor renewing under this claim does anything."""
    before = await t.everything()
    for outcome in OUTCOMES:
        expect.that(not await t.finish(claim, outcome, t.new("next")), f"finish with {outcome} says that {words} does not hold")
        await t.unchanged(before, f"finish with {outcome} under {words} changes nothing")
    expect.equal(await t.store.renew([claim], 60.0, now=t.now), set(), f"renew says that {words} does not hold")
    await t.unchanged(before, f"renew under {words} changes nothing")


@tokens
async def a_wrong_token_changes_nothing(t: Trial) -> None:
    """A claim with another token, or the token of another job, is refused (E22)."""
    held, other = await t.make.running(), await t.make.running("other")
    await _refused(t, Claim(held.claim.id, "token-of-nobody"), "a token of nobody")
    await _refused(t, Claim(held.claim.id, other.claim.token), "the token of another job")
    await _refused(t, Claim(held.claim.id, held.claim.token.upper()), "a token in another case")
    await _refused(t, Claim(held.claim.id, ""), "an empty token")


@tokens
async def an_unknown_id_changes_nothing(t: Trial) -> None:
    """A claim on a job that is not stored is refused (E22)."""
    held = await t.make.running()
    await _refused(t, Claim(t.make.id(), held.claim.token), "a job that does not exist")


@tokens
async def a_token_holds_once(t: Trial) -> None:
    """After an outcome was applied its claim holds no more: the second outcome is refused (E22)."""
    for outcome in OUTCOMES:
        held = await t.make.running(f"after {type(outcome).__name__}", queue="q")
        await t.end(held, outcome)
        await _refused(t, held.claim, f"the token of an attempt that ended with {type(outcome).__name__}")


@tokens
async def a_late_result_never_ends_the_next_attempt(t: Trial) -> None:
    """While the second attempt runs, the first one's token is refused, with the same attempt number or not (E22)."""
    for outcome in (RetryAfter(0.0, "E: no"), Released()):
        job = await t.make.pending(f"after {type(outcome).__name__}")
        first = await t.hold(job.id)
        await t.end(first, outcome)
        second = await t.hold(job.id)
        await _refused(t, first.claim, f"the first attempt's token, after {type(outcome).__name__}, while the second runs")
        expect.that(await t.finish(second, Done()), "the second attempt's token holds")


@tokens
async def a_reclaimed_attempt_cannot_report(t: Trial) -> None:
    """A worker that comes back after its job was reclaimed is refused, before and after the next claim (E21, E22)."""
    held = await t.make.expired()
    expired = expect.one(await t.store.expired(1, now=t.now), "expired answers the one running job whose lease is past")
    await t.reclaim(Reclaim(expired, RetryAfter(0.0, "visibility timeout exceeded")))
    await _refused(t, held.claim, "the token of a reclaimed attempt")
    again = await t.hold(held.job.id)
    await _refused(t, held.claim, "the token of a reclaimed attempt, while the next runs")
    expect.that(await t.finish(again, Done()), "the next attempt's token holds")


@tokens
async def an_expired_claim_holds_until_it_is_reclaimed(t: Trial) -> None:
    """A result that comes after the lease, but before anyone took the job back, is accepted: nothing ran twice (E21)."""
    held = await t.make.expired()
    expect.that(await t.finish(held, Done()), "a claim holds until its job is reclaimed, though its lease is past")
    expect.equal((await t.job(held.job.id)).state, State.DONE, "the result of an expired claim that nobody took back counts")
    expect.equal(list(await t.store.expired(10, now=t.now)), [], "a done job is no longer expired")


@tokens
async def held_answers_what_a_lost_claim_took(t: Trial) -> None:
    """The running jobs of a token are answered as the claim answered them, and nothing else (E21)."""
    for _ in range(3):
        await t.make.pending()
    other = await t.make.running("other")
    claimed = await t.claim(Demand(3, None, {"job": 5}), token="lost")  # noqa: S106  # a claim's token is no password
    before = await t.everything()
    found = dict(await t.store.held(["lost", "never-used"]))
    expect.equal(set(found), {Claim(job.id, "lost") for job in claimed.jobs}, "held answers the claims of the token")
    for job in claimed.jobs:
        expect.same_job(found[Claim(job.id, "lost")], job, "held answers each job as the claim answered it", but={"failures"})
    both = await t.store.held(["lost", other.claim.token])
    expect.equal(len(both), 4, "held answers the jobs of all tokens that it is given")
    await t.unchanged(before, "held changes nothing")


@tokens
async def held_leaves_out_what_ended(t: Trial) -> None:
    """A job that was finished, released or reclaimed is held by no token any more (E21)."""
    for outcome in OUTCOMES:
        held = await t.make.running(f"after {type(outcome).__name__}", queue="q")
        await t.end(held, outcome)
        expect.equal(await t.store.held([held.claim.token]), [], f"nothing is held after {type(outcome).__name__}")
    expect.equal(await t.store.held([]), [], "no token holds nothing")


@tokens
async def jobs_of_one_claim_end_apart(t: Trial) -> None:
    """One token may hold many jobs, and ending one leaves the others held."""
    for _ in range(3):
        await t.make.pending()
    claimed = await t.claim(Demand(3), token="shared")  # noqa: S106  # a claim's token is no password
    first, *others = (Claim(job.id, "shared") for job in claimed.jobs)
    expect.that(await t.finish(first, Done()), "one job of a shared token is finished")
    expect.equal({claim for claim, _ in await t.store.held(["shared"])}, set(others), "the others are still held")
