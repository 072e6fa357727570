"""Concurrency: each job claimed once, one job for each key, no request lost, and leases kept from a thread (E8, E20, E26)."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from treadle.core.job import UNFINISHED, Enqueued, Key, NewJob, State
from treadle.core.outcome import Dead, Done, Outcome
from treadle.core.store import Claim, Demand, Ending, Firing, Reclaim, Wakeups
from treadle.testing.contract import expect
from treadle.testing.contract.nightly import nightly, stored
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

concurrency = Group[Trial]("concurrency")

THREADS = 4
DEADLINE = 5.0
T = TypeVar("T")


async def _in_threads(work: Callable[[int], Coroutine[Any, Any, T]]) -> list[T]:
    """Run the work in several threads at once, each with an event loop of its own, begun together."""
    together = threading.Barrier(THREADS)

    def run(number: int) -> T:
        together.wait(30)
        return asyncio.run(work(number))

    return list(await asyncio.gather(*(asyncio.to_thread(run, number) for number in range(THREADS))))


def _once(claimed: list[str], jobs: list[NewJob], words: str) -> None:
    twice = [one for one, number in Counter(claimed).items() if number > 1]
    expect.equal(twice, [], f"{words}: no job is claimed twice")
    expect.equal(sorted(claimed), sorted(job.id for job in jobs), f"{words}: every job is claimed")


@concurrency
async def concurrent_claims_take_each_job_once(t: Trial) -> None:
    """Many tasks that claim at once share the jobs out, each to one of them (E3)."""
    jobs = [t.new(f"n{number % 3}", priority=number % 4) for number in range(100)]
    await t.enqueue(*jobs)
    tokens = [t.make.token() for _ in range(40)]
    answers = await asyncio.gather(*(t.claim(Demand(3), token=token, worker=token) for token in tokens))
    _once([job.id for answer in answers for job in answer.jobs], jobs, "forty claims of three at once, of a hundred jobs")
    for token, answer in zip(tokens, answers, strict=True):
        expect.that(all(job.worker == token and job.attempts == 1 for job in answer.jobs), "each job runs under its own claim")


@concurrency
async def claims_from_threads_take_each_job_once(t: Trial) -> None:
    """Several threads, each with its own event loop, drain one store together (S1, E3)."""
    jobs = [t.new(f"n{number % 3}") for number in range(120)]
    await t.enqueue(*jobs)
    now = t.now

    async def drain(thread: int) -> list[str]:
        mine: list[str] = []
        for turn in range(1000):
            token = f"token-{thread}-{turn}"
            claimed = await t.store.claim(token, [Demand(4)], worker=f"w{thread}", lease=60.0, now=now)
            if not claimed.jobs:
                break
            mine += [job.id for job in claimed.jobs]
            endings = [Ending(Claim(job.id, token), Done()) for job in claimed.jobs]
            took = await t.store.finish(endings, now=now)
            expect.equal(len(took), len(endings), "what a thread claimed it can finish")
        return mine

    _once([one for mine in await _in_threads(drain) for one in mine], jobs, "four threads drain 120 jobs")
    expect.equal((await t.store.stats(now=now)).done, len(jobs), "every job is done")


@concurrency
async def concurrent_enqueuers_of_one_key_make_one_job(t: Trial) -> None:
    """However many enqueue one key at once, exactly one is created and all others are told of it (E8)."""
    for kind in ("idempotency", "dedupe", "schedule"):
        key = Key(kind, "k")
        answers = await asyncio.gather(*(t.store.enqueue([t.new("job", key=key)], now=t.now) for _ in range(30)))
        _one_created([one for answer in answers for one in answer], f"thirty enqueuers of one {kind} key at once")


@concurrency
async def enqueuers_of_one_key_in_threads_make_one_job(t: Trial) -> None:
    """The same from several threads and loops, with batches that mix keys in different orders (E8)."""
    texts = [f"k{number}" for number in range(12)]
    now = t.now
    batches = [
        [t.new("job", idempotency_key=text) for text in (texts if thread % 2 else reversed(texts))] for thread in range(THREADS)
    ]

    async def enqueue(thread: int) -> list[Enqueued]:
        return await t.store.enqueue(batches[thread], now=now)

    answers = [one for batch in await _in_threads(enqueue) for one in batch]
    for text in texts:
        _one_created([one for one in answers if one.job.idempotency_key == text], "four threads that enqueue the same keys")


def _one_created(answers: list[Enqueued], words: str) -> None:
    created = [one.id for one in answers if one.created]
    expect.equal(len(created), 1, f"{words}: one job is created")
    expect.equal({one.id for one in answers}, set(created), f"{words}: all are answered with that job")


@concurrency
async def no_request_is_lost_while_the_holder_ends(t: Trial) -> None:
    """Enqueued at the moment when the key's holder ends, a job is created, or finds an unfinished one; never neither (E8)."""
    key = Key("dedupe", "k")
    outcomes: tuple[Outcome, ...] = (Done(), Dead("E: no"))
    for turn in range(20):
        [first] = await t.enqueue(t.new("job", key=key))
        held = await t.hold(first.id)
        answers, _ = await asyncio.gather(
            asyncio.gather(*(t.store.enqueue([t.new("job", key=key)], now=t.now) for _ in range(3))),
            t.finish(held, outcomes[turn % 2]),
        )
        for [answer] in answers:
            expect.that(
                answer.created or answer.job.state in UNFINISHED,
                "an enqueue during the end of its key's holder is created, or answered with an unfinished job",
                answer.job.state,
            )
        created = {answer.id for [answer] in answers if answer.created}
        expect.that(len(created) <= 1, "at most one of the enqueuers creates the next job", created)
        expect.that(
            bool(created) or all(answer.id == first.id for [answer] in answers),
            "without a new job all found the one that was ending",
        )
        for one in created:
            await t.end(await t.hold(one), Done())


@concurrency
async def one_attempt_ends_once(t: Trial) -> None:
    """Of many that finish, release or reclaim one attempt at the same moment exactly one is believed (E22)."""
    for _ in range(5):
        held = await t.make.expired("job")
        expired = expect.one(await t.store.expired(10, now=t.now), "expired answers the one running job whose lease is past")
        took = await asyncio.gather(
            t.finish(held, Done()),
            t.finish(held, Dead("E: one")),
            t.reclaim(Reclaim(expired, Dead("E: two"))),
            t.reclaim(Reclaim(expired, Dead("E: three"))),
        )
        expect.equal(sum(took), 1, "one attempt is ended by one of those who try at once")
        job = await t.job(held.job.id)
        expect.equal(len(job.failures), 0 if took[0] else 1, "and leaves one record at most")


@concurrency
async def a_renewal_and_a_reclaim_never_both_win(t: Trial) -> None:
    """A worker that renews at the moment of the reclaim either keeps its job or is told that it lost it (E21)."""
    for _ in range(5):
        held = await t.make.expired("job")
        expired = expect.one(await t.store.expired(10, now=t.now), "expired answers the one running job whose lease is past")
        renewed, reclaimed = await asyncio.gather(
            t.store.renew([held.claim], 60.0, now=t.now), t.reclaim(Reclaim(expired, Dead("E: no")))
        )
        job = await t.job(held.job.id)
        state = State.RUNNING if not reclaimed else State.DEAD
        expect.equal(job.state, state, "a job that was reclaimed is dead, one that was not still runs")
        expect.that(reclaimed or held.claim in renewed, "one of the two wins")
        if not reclaimed:
            await t.end(held, Done())


@concurrency
async def a_lease_keeper_renews_while_the_loop_is_blocked(t: Trial) -> None:
    """The keeper renews from a thread of its own, while a handler holds up the event loop, and answers what held (E20)."""
    held = await t.make.running()
    wrong = Claim(held.claim.id, "another-token")
    keeper = t.store.lease_keeper()
    answers: list[set[Claim]] = []
    thread = threading.Thread(target=lambda: answers.append(keeper.renew([held.claim, wrong], 600.0, t.at(30))), daemon=True)
    try:
        thread.start()
        thread.join(DEADLINE)  # on purpose in the event loop's own thread: that is how a handler blocks it
        expect.that(not thread.is_alive(), f"a lease keeper renews within {DEADLINE:g} s though the event loop is blocked")
    finally:
        keeper.close()
        keeper.close()
    expect.equal(answers, [{held.claim}], "a lease keeper answers the claims that held")
    expect.equal((await t.job(held.job.id)).lease_until, t.at(630), "a lease keeper leases from the moment that it was given")


@concurrency
async def a_lease_keeper_renews_by_the_stores_own_clock(t: Trial) -> None:
    """Without a moment the keeper leases from the store's own now (E20, S9)."""
    job = t.new()
    await t.store.enqueue([job])
    claimed = await t.store.claim("token-1", [Demand(1)], worker="w", lease=60.0)
    keeper = t.store.lease_keeper()
    try:
        claim = Claim(job.id, "token-1")
        expect.equal(await asyncio.to_thread(keeper.renew, [claim], 600.0), {claim}, "the keeper answers the claim that held")
    finally:
        keeper.close()
    renewed, first = (await t.job(job.id)).lease_until, claimed.jobs[0].lease_until
    expect.that(
        renewed is not None and first is not None and (renewed - first).total_seconds() > 500,
        "the lease counts from now",
        renewed,
    )


@concurrency
async def a_listener_is_woken_by_an_enqueue(t: Trial) -> None:
    """Where a store tells of arrivals, an enqueue wakes whoever listens within seconds (E26)."""
    if not isinstance(t.store, Wakeups):
        return  # an optional capability: polling alone stays correct
    woken = asyncio.Event()
    listener = await t.store.listen(_waker(woken))
    try:
        for turn in range(2):
            await _wakes(woken, t.store.enqueue([t.new(f"n{turn}")]), "an enqueue")
    finally:
        await listener.close()
        await listener.close()


@concurrency
async def a_listener_is_woken_by_a_firing(t: Trial) -> None:
    """The job of a schedule's firing has arrived like any other (E26, T12)."""
    if not isinstance(t.store, Wakeups):
        return  # an optional capability: polling alone stays correct
    schedule = await stored(t, nightly(t))
    woken = asyncio.Event()
    listener = await t.store.listen(_waker(woken))
    try:
        await _wakes(woken, t.store.fire([Firing(schedule, t.at(60), schedule.firing(t.make.id()))]), "a firing")
    finally:
        await listener.close()


@concurrency
async def a_listener_is_woken_from_another_loop(t: Trial) -> None:
    """An enqueue in another thread with its own loop wakes the listener as well (E26)."""
    if not isinstance(t.store, Wakeups):
        return  # an optional capability: polling alone stays correct
    woken = asyncio.Event()
    listener = await t.store.listen(_waker(woken))
    try:
        await _settled(woken)
        await asyncio.to_thread(lambda: asyncio.run(t.store.enqueue([t.new()])))
        try:
            async with asyncio.timeout(DEADLINE):
                await woken.wait()
        except TimeoutError:
            expect.that(False, f"a listener is woken within {DEADLINE:g} s of an enqueue in another thread")
    finally:
        await listener.close()


def _waker(woken: asyncio.Event) -> Callable[[], None]:
    """What sets the event from any thread."""
    loop = asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(woken.set)

    return wake


async def _wakes(woken: asyncio.Event, act: Coroutine[Any, Any, object], words: str) -> None:
    """Act, and fail where that wakes nobody in time."""
    await _settled(woken)
    acting = asyncio.create_task(act)
    try:
        async with asyncio.timeout(DEADLINE):
            await woken.wait()
    except TimeoutError:
        expect.that(False, f"a listener is woken within {DEADLINE:g} s of {words}")
    finally:
        await acting


async def _settled(woken: asyncio.Event) -> None:
    """Forget the wake-ups so far; a stray one is allowed, since a wake-up is a hint."""
    await asyncio.sleep(0)
    woken.clear()
