"""Claiming: which jobs, in which order, how many, and when to come back (E3, E19, E28)."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.core.outcome import Released, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Demand
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

claim = Group[Trial]("claim")


@claim
async def a_claimed_job_is_running_and_leased(t: Trial) -> None:
    """A claim makes the job running, counts the attempt at once, and leases it to the worker (E3)."""
    job = await t.make.pending(payload={"n": 1}, max_attempts=3)
    t.advance(10)
    claimed = await t.claim(Demand(1), lease=30.0, worker="worker-7")
    expect.equal(len(claimed.jobs), 1, "a due job is claimed")
    running = replace(job, state=State.RUNNING, attempts=1, started_at=t.now, worker="worker-7", lease_until=t.at(30.0))
    expect.same_job(claimed.jobs[0], running, "a claim answers the job as it runs now")
    expect.same_job(await t.job(job.id), running, "a claimed job is stored as running")


@claim
async def nothing_is_claimed_where_nothing_waits(t: Trial) -> None:
    """A claim on an empty store takes nothing, and knows of no next job."""
    claimed = await t.claim(Demand(5))
    expect.equal((len(claimed.jobs), claimed.next_in), (0, None), "an empty store has no job and no next due time")


@claim
async def a_claim_without_demands_takes_nothing(t: Trial) -> None:
    """No demand, no job."""
    await t.make.pending()
    claimed = await t.claim()
    expect.equal(len(claimed.jobs), 0, "a claim without demands takes nothing")


@claim
async def a_job_is_due_at_its_run_at_and_not_before(t: Trial) -> None:
    """A job is claimed from the moment of its run_at on (E4)."""
    job = await t.make.pending(run_at=t.at(10))
    t.advance(9.999999)
    expect.same_ids(await t.claimable(), [], "a job is not claimed a microsecond before its run_at")
    t.advance(0.000001)
    expect.same_ids(await t.claimable(), [job], "a job is claimed at the moment of its run_at")


@claim
async def higher_priorities_go_first(t: Trial) -> None:
    """Priority decides before anything else, from 1000 down to -1000 (E28)."""
    made = {
        priority: await t.make.pending(f"p{priority}", priority=priority) for priority in (0, -1000, 1000, 9, 10, -1, 1, -10)
    }
    expect.same_ids(
        await t.claimable(), [made[priority] for priority in sorted(made, reverse=True)], "higher priorities are claimed first"
    )


@claim
async def of_one_priority_the_longest_due_goes_first(t: Trial) -> None:
    """Among jobs of one priority the earlier run_at goes first, whatever the order of enqueueing (E28)."""
    late, early, middle = [await t.make.pending(f"due{s}", run_at=t.at(s)) for s in (-1.0, -3.0, -2.000001)]
    t.advance(1)
    expect.same_ids(await t.claimable(), [early, middle, late], "of one priority the longest due is claimed first")


@claim
async def of_one_moment_the_lower_id_goes_first(t: Trial) -> None:
    """Among jobs of one priority and run_at the lower id goes first, which is the older job (E28)."""
    new = [t.new(f"n{number}") for number in range(6)]
    stored = await t.enqueue(*(new[index] for index in (3, 0, 5, 1, 4, 2)))
    jobs = sorted((one.job for one in stored), key=lambda job: job.id)
    expect.same_ids(await t.claimable(), jobs, "of one priority and run_at the lower id is claimed first")


@claim
async def a_job_that_becomes_due_takes_its_place_by_priority(t: Trial) -> None:
    """A delayed job of a higher priority goes before jobs that were due all along (E28)."""
    low = await t.make.pending("low")
    high = await t.make.pending("high", priority=5, delay=10.0)
    t.advance(10)
    expect.same_ids(await t.claimable(), [high, low], "a job that has become due is claimed by its priority")


@claim
async def the_order_holds_over_queues_and_names_together(t: Trial) -> None:
    """One demand over several queues and names takes the best of them all, not of each in turn (E28)."""
    jobs = []
    for number in range(24):
        jobs.append(
            await t.make.pending(
                f"n{number % 3}", queue=f"q{number % 2}", priority=(number * 7) % 5, run_at=t.at(-((number * 11) % 6))
            )
        )
    best = sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))
    names = {f"n{number}": 5 for number in range(3)}
    first = await t.claim(Demand(5, ("q0", "q1"), names))
    expect.same_ids(first.jobs, best[:5], "a claim of five takes the five best over all its queues and names")
    rest = await t.claim(Demand(100, ("q1", "q0"), names))
    expect.same_ids(rest.jobs, best[5:], "the next claim goes on where the first stopped")


@claim
async def no_more_than_the_limit_is_claimed(t: Trial) -> None:
    """A demand takes at most its limit, and leaves the others pending."""
    for _ in range(5):
        await t.make.pending()
    claimed = await t.claim(Demand(2))
    expect.equal(len(claimed.jobs), 2, "a claim with limit 2 takes two of five jobs")
    stats = await t.store.stats(now=t.now)
    expect.equal((stats.pending, stats.running), (3, 2), "the jobs over the limit stay pending")


@claim
async def each_demand_has_its_own_limit(t: Trial) -> None:
    """Of several demands in one call each is served, the earlier first, and no job is taken twice."""
    a = [await t.make.pending("a", queue="qa") for _ in range(3)]
    b = [await t.make.pending("b", queue="qb", priority=5) for _ in range(3)]
    claimed = await t.claim(Demand(2, ("qa",)), Demand(1, ("qb",), {"b": 5}), Demand(5, ("qa", "qb")))
    expect.same_ids(
        claimed.jobs, [a[0], a[1], b[0], b[1], b[2], a[2]], "each demand of a claim is served in turn, up to its own limit"
    )


@claim
async def unknown_names_are_left_alone(t: Trial) -> None:
    """A worker claims only the names that it knows; the others stay pending and unspent (E19)."""
    unknown = [await t.make.pending(f"unknown-{number}", priority=9) for number in range(20)]
    known = await t.make.pending("known")
    claimed = await t.claim(Demand(10, None, {"known": 5, "never-enqueued": 5}))
    expect.same_ids(claimed.jobs, [known], "only jobs of known names are claimed")
    for job in unknown:
        expect.same_job(await t.job(job.id), job, "a job of an unknown name stays as it was")


@claim
async def no_names_is_not_any_name(t: Trial) -> None:
    """An empty mapping of names claims nothing; only None means any name."""
    await t.make.pending()
    expect.equal(len((await t.claim(Demand(10, None, {}))).jobs), 0, "names={} claims nothing")
    expect.equal(len((await t.claim(Demand(10, None, None))).jobs), 1, "names=None claims any name")


@claim
async def only_the_queues_asked_for_are_claimed(t: Trial) -> None:
    """A demand with queues takes from those queues only."""
    wanted = await t.make.pending(queue="wanted")
    await t.make.pending(queue="other", priority=9)
    await t.make.pending(queue="wanted2", priority=9)
    expect.same_ids(await t.claimable(queues=("wanted", "empty")), [wanted], "only the queues asked for are claimed from")
    expect.same_ids(await t.claimable(queues=()), [], "queues=() claims nothing")


@claim
async def queues_of_faces_are_claimed_only_by_name(t: Trial) -> None:
    """Without queues a demand leaves out the queues of the functions service and of plugins; named, they are claimed (E1)."""
    own = [await t.make.pending(queue=queue) for queue in ("default", "functions2", "plugin", "a:plugin:b")]
    faces = [await t.make.pending(queue=queue, priority=9) for queue in ("functions", "plugin:mail", "plugin:")]
    expect.same_ids(await t.claimable(), own, "queues=None leaves out 'functions' and 'plugin:...'")
    expect.same_ids(
        await t.claimable(queues=("functions", "plugin:mail", "plugin:")),
        faces,
        "the queues of faces are claimed where they are named",
    )


@claim
async def max_attempts_is_fixed_at_the_first_claim(t: Trial) -> None:
    """A job without max_attempts gets that of its name in the demand at its first claim, and keeps it (E4)."""
    by_name = await t.make.pending("by-name")
    own = await t.make.pending("own", max_attempts=2)
    by_demand = await t.make.pending("by-demand", queue="q")
    await t.claim(Demand(10, ("default",), {"by-name": 7, "own": 7}), lease=1.0)
    await t.claim(Demand(10, ("q",), None, max_attempts=4), lease=1.0)
    for job, expected in ((by_name, 7), (own, 2), (by_demand, 4)):
        expect.equal((await t.job(job.id)).max_attempts, expected, f"max_attempts of {job.name!r} is fixed at its first claim")


@claim
async def max_attempts_stays_at_later_claims(t: Trial) -> None:
    """Another worker with another number does not change what the first claim fixed (E4)."""
    job = await t.make.pending("a")
    for outcome in (RetryAfter(0.0, "E: no"), Released()):
        held = await t.hold(job.id)
        expect.equal(held.job.max_attempts, 5, "the first claim fixes max_attempts")
        await t.end(held, outcome)
        expect.equal((await t.job(job.id)).max_attempts, 5, f"max_attempts stays fixed after {outcome}")
    claimed = await t.claim(Demand(1, None, {"a": 9}, max_attempts=9))
    expect.equal(claimed.jobs[0].max_attempts, 5, "a later claim with another number leaves max_attempts as it is")


@claim
async def a_used_up_count_never_keeps_a_job_from_its_claim(t: Trial) -> None:
    """Claiming never filters on attempts, since a redriven job may have used up its count (E17)."""
    job = await t.make.dead(max_attempts=1)
    await t.store.redrive(JobFilter(ids=[job.id]), RedrivePolicy.KEEP, now=t.now)
    again = expect.one(await t.claimable(), "a claim takes the one due job")
    expect.equal((again.attempts, again.max_attempts), (2, 1), "a redriven job with its count used up is claimed all the same")


@claim
async def next_in_is_exact_where_less_came_than_was_asked_for(t: Trial) -> None:
    """A claim that takes all that is due says in how many seconds the next job of its demands is due (E26)."""
    await t.make.pending("due")
    await t.make.pending("later", delay=30.5)
    await t.make.pending("latest", delay=90.0)
    await t.make.pending("unknown", delay=1.0)
    await t.make.pending("due", queue="functions", delay=2.0)
    known = {"due": 5, "later": 5, "latest": 5}
    expect.equal(
        (await t.claim(Demand(10, None, known))).next_in, 30.5, "next_in is the time until the next job of the demands"
    )
    t.advance(30)
    expect.equal((await t.claim(Demand(10, None, known))).next_in, 0.5, "next_in counts down as time goes on")
    both = await t.claim(Demand(2, None, {"latest": 5}), Demand(2, ("functions",)))
    expect.equal(both.next_in, 60.0, "next_in is the least over all demands, of jobs that the claim did not take")
    expect.equal((await t.claim(Demand(10, ("default",), {"due": 5}))).next_in, None, "next_in is None where none waits")


@claim
async def next_in_does_not_put_off_what_is_ready(t: Trial) -> None:
    """Where the limit left due jobs behind, next_in is 0.0, so that nobody sleeps over them (E26)."""
    for _ in range(3):
        await t.make.pending()
    claimed = await t.claim(Demand(2))
    expect.equal(claimed.next_in, 0.0, "next_in is 0.0 where due jobs are left over")


@claim
async def a_claim_answers_the_payload(t: Trial) -> None:
    """What a worker needs is all in the answer: payload, keys, schedule (E5)."""
    job = await t.make.pending("a", {"b": [1, 2.5, None, {"c": "d"}]}, dedupe_key="k", schedule="every:a")
    claimed = expect.one(await t.claimable(), "a claim takes the one due job")
    expect.equal(claimed.payload, {"b": [1, 2.5, None, {"c": "d"}]}, "a claim answers the payload")
    expect.equal((claimed.key, claimed.schedule), (job.key, "every:a"), "a claim answers key and schedule")
