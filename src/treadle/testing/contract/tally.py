"""The tally: jobs by queue, name and state, and what has waited longest in each queue, after every move (F15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Job, State
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.policies.limits import FAR_FUTURE, MAX_NAME
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval
from treadle.core.store import Claim, Demand, Ending, Reclaim, Tally
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

tally = Group[Trial]("tally")

QUEUES = ("default", "functions", "plugin:mail", "plugin:x")
# As a queue and a name, each differs from the others in less than a careless key, column or collation can tell.
PLACES = [
    ("a:b", "c"),
    ("a", "b:c"),
    ("a", ":b"),
    ("a:", "b"),
    ("1:a", "1:b"),
    ("q", "x" * MAX_NAME),
    ("q", "x" * (MAX_NAME - 1) + "y"),
    ("\U0001f600" * MAX_NAME, "\U0001f600" * MAX_NAME),
    ("q", "\U0001f600\u200d"),
    ("q", "é"),
    ("q", "e\u0301"),
    ("q", "E"),
    ("Q", "e"),
    ("q", '{"a": [\'b\', "%s", \\u0000]}'),
    ("a\nb", "a\tb"),
    ("*", "?[a]%_$1"),
]


async def _agrees(t: Trial, after: str) -> None:
    expect.same_tally(await t.store.tally(), await t.everything(), f"the tally is that of the stored jobs after {after}")


async def _ended(t: Trial, jobs: Sequence[Job], token: str, outcome: Outcome) -> None:
    took = await t.store.finish([Ending(Claim(job.id, token), outcome) for job in jobs], now=t.now)
    expect.equal(len(took), len(jobs), "finish answers the claims that hold")


@tally
async def an_empty_store_has_nothing_to_tally(t: Trial) -> None:
    """No counts and no oldest jobs, before the first job."""
    expect.equal(await t.store.tally(), Tally({}, {}), "an empty store has nothing to tally")


@tally
async def jobs_are_counted_by_queue_name_and_state(t: Trial) -> None:
    """Each queue, those of faces too, each name and each of the four states is counted for itself."""
    numbers = {State.PENDING: (2, 1), State.RUNNING: (1, 2), State.DONE: (3, 1), State.DEAD: (1, 1)}
    wanted = {
        (queue, name, state): number + place * (state is State.DONE)
        for place, queue in enumerate(QUEUES)
        for state, both in numbers.items()
        for name, number in zip(("a", "b"), both, strict=True)
    }
    for state in (State.DONE, State.DEAD, State.RUNNING, State.PENDING):
        await t.enqueue(*(t.new(name, queue=q) for (q, name, s), n in wanted.items() if s is state for _ in range(n)))
        if state is State.PENDING:
            break
        token = t.make.token()
        taken = (await t.claim(Demand(1000, QUEUES), token=token)).jobs
        if state is not State.RUNNING:
            await _ended(t, taken, token, Done() if state is State.DONE else Dead("E: no"))
    answer = await t.store.tally()
    expect.equal(dict(answer.counts), wanted, "the tally counts jobs by queue, name and state")
    expect.that(all(type(state) is State for _, _, state in answer.counts), "the states of a tally are of the type State")
    expect.equal(dict(answer.oldest), dict.fromkeys(QUEUES, t.now), "each queue with pending jobs has its earliest run_at")


@tally
async def queues_and_names_are_told_apart_exactly(t: Trial) -> None:
    """Colons, emoji, quotes, accents, capitals and 128 code points: no two pairs run together, in any state (E1)."""
    queues = tuple(dict.fromkeys(queue for queue, _ in PLACES))
    for outcome in (Done(), Dead("E: no"), None):
        await t.enqueue(*(t.new(name, queue=queue) for queue, name in PLACES))
        token = t.make.token()
        taken = (await t.claim(Demand(1000, queues), token=token)).jobs
        if outcome is not None:
            await _ended(t, taken, token, outcome)
    await t.enqueue(*(t.new(name, queue=queue, delay=5.0) for queue, name in PLACES))
    answer = await t.store.tally()
    wanted = {(queue, name, state): 1 for queue, name in PLACES for state in State}
    expect.equal(dict(answer.counts), wanted, "each pair of queue and name is counted for itself")
    expect.equal(dict(answer.oldest), dict.fromkeys(queues, t.at(5.0)), "each queue has its own earliest run_at")


@tally
async def oldest_is_the_earliest_run_at_of_each_queue(t: Trial) -> None:
    """Of pending jobs alone, due or delayed, whatever their priority and name, to the microsecond."""
    await t.make.done("a", run_at=t.at(-90))
    await t.make.running("b", run_at=t.at(-80))
    await t.make.dead("a", queue="functions", run_at=t.at(-70))
    expect.equal(dict((await t.store.tally()).oldest), {}, "without pending jobs no queue has an oldest one")
    await t.make.pending("c", delay=60.0, priority=9)
    await t.make.pending("d", delay=30.000001)
    await t.make.pending("e", delay=45.0, queue="functions")
    wanted = {"default": t.at(30.000001), "functions": t.at(45.0)}
    expect.equal(dict((await t.store.tally()).oldest), wanted, "delayed jobs are pending and have the earliest run_at")
    await t.make.pending("c", queue="functions", priority=9, run_at=t.at(-5))
    await t.make.pending("c", queue="functions", run_at=t.at(-6.000001))
    await t.make.pending("c", queue="functions", priority=-9, run_at=t.at(-6))
    await t.make.pending("f", queue="functions", run_at=t.at(-6))
    wanted["functions"] = t.at(-6.000001)
    expect.equal(dict((await t.store.tally()).oldest), wanted, "the one that goes first is not always the oldest")
    first, last = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), FAR_FUTURE
    await t.make.pending("g", queue="early", run_at=first)
    await t.make.pending("g", queue="late", run_at=last)
    wanted |= {"early": first, "late": last}
    expect.equal(dict((await t.store.tally()).oldest), wanted, "the earliest run_at is exact, long ago and far ahead")
    t.advance(100.0)
    await _agrees(t, "time went by")
    for _ in range(9):
        await t.claim(Demand(1, ("default", "functions")))
        await _agrees(t, "a claim of one job")


@tally
async def every_move_changes_the_tally(t: Trial) -> None:
    """Claim, retry, release, end, redrive, hurry, reclaim, delete and prune, until nothing is left."""
    failing, released, ended = await t.make.pending("a"), await t.make.pending("b"), await t.make.pending("c")
    await _agrees(t, "an enqueue")
    await t.make.pending("later", delay=600.0, queue="q", dedupe_key="k")
    [again] = await t.enqueue(t.new("later", queue="another", dedupe_key="k"))
    expect.equal(again.created, False, "the key is held")
    await _agrees(t, "an enqueue that a key held")
    interval = Interval.of(5.0, t.new("tick", queue="ticks"))
    await t.store.ensure([(interval, t.make.id())], now=t.now)
    await _agrees(t, "an interval's first copy")
    for job, outcome in (
        (failing, RetryAfter(30.0, "E: no")),
        (released, Released(10.0)),
        (ended, Dead("E: no")),
    ):
        held = await t.hold(job.id)
        await _agrees(t, "a claim")
        await t.end(held, outcome)
        await _agrees(t, str(outcome))
    [tick] = await t.store.find(JobFilter(names=frozenset({"tick"})), limit=1, now=t.now)
    await t.end(await t.hold(tick.id), Done(), interval.copy(t.make.id(), interval.seconds))
    await _agrees(t, "an end with the next copy of an interval")
    await t.store.run_now(JobFilter(names=frozenset({"later"})), now=t.now)
    await _agrees(t, "run_now")
    letter = await t.make.dead("twice", dedupe_key="k")
    await t.make.pending("twice", dedupe_key="k")
    redriven = await t.store.redrive(EVERYTHING, RedrivePolicy.RESET, now=t.now)
    expect.equal((list(redriven.revived), list(redriven.dropped)), ([ended.id], [letter.id]), "one is revived, one dropped")
    await _agrees(t, "a redrive")
    await t.make.expired("slow", queue="functions")
    [expired] = await t.store.expired(1, now=t.now)
    await t.reclaim(Reclaim(expired, Dead("lost")))
    await _agrees(t, "a reclaim")
    await t.make.done("old", queue="plugin:x")
    t.advance(60.0)
    await t.store.delete(JobFilter(states=frozenset({State.DONE}), older_than=60.0), now=t.now)
    await _agrees(t, "a prune")
    await t.store.delete(JobFilter(names=frozenset({"a", "slow"})), now=t.now)
    await _agrees(t, "a delete")
    await t.store.delete(EVERYTHING, now=t.now)
    expect.equal(await t.store.tally(), Tally({}, {}), "what is gone leaves no zeros behind")


@tally
async def large_numbers_are_counted_whole(t: Trial) -> None:
    """More than a thousand finished jobs, and names, are counted as a few are."""
    jobs = [t.new("abc"[number % 3], queue=("default", "functions")[number % 2]) for number in range(1203)]
    await t.enqueue(*jobs)
    token = t.make.token()
    taken = (await t.claim(Demand(2000, ("default", "functions")), token=token)).jobs
    await _ended(t, taken, token, Done())
    names = [t.new(f"n{number:04}", queue="names", priority=number % 3, delay=number % 2 * 60.0) for number in range(1101)]
    await t.enqueue(*names)
    wanted = Counter((job.queue, job.name, State.DONE) for job in jobs)
    wanted |= Counter((job.queue, job.name, State.PENDING) for job in names)
    answer = await t.store.tally()
    expect.that(dict(answer.counts) == dict(wanted), "a tally counts thousands", Counter(answer.counts) - wanted)
    expect.equal(dict(answer.oldest), {"names": t.now}, "and finds the earliest among thousands of names")
