"""Intervals: one unfinished copy, made in the step that ends the last one, and put back where it went missing (T1 to T4)."""

from __future__ import annotations

import asyncio

from treadle.core.filter import JobFilter
from treadle.core.job import Enqueued, Job, Key, NewJob, State
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval
from treadle.core.store import Reclaim
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial, pending
from treadle.testing.factory import Held
from treadle.testing.suite import Group

intervals = Group[Trial]("intervals")

UNFINISHED = frozenset({State.PENDING, State.RUNNING})


def _every(t: Trial, seconds: float = 60.0, name: str = "report", payload: int = 1, **options: int) -> Interval:
    return Interval.of(seconds, t.new(name, payload, **options))  # type: ignore[arg-type]  # priorities only


async def _ensure(t: Trial, interval: Interval) -> Enqueued | None:
    answers = await t.store.ensure([(interval, t.make.id())], now=t.now)
    expect.equal(len(answers), 1, "ensure answers each interval in its place")
    return answers[0]


async def _copies(t: Trial, name: str = "report") -> list[Job]:
    return await t.store.find(JobFilter(names=frozenset({name}), states=UNFINISHED), limit=100, now=t.now)


async def _started(t: Trial, interval: Interval) -> Held:
    """The interval registered, and its first copy running."""
    await _ensure(t, interval)
    copy = expect.one(await _copies(t), "there is one unfinished copy of the interval")
    return await t.hold(copy.id)


@intervals
async def the_first_copy_is_due_at_once(t: Trial) -> None:
    """Registering an interval makes its first copy, under the id given, due now and not one period later (T1)."""
    interval, job_id = _every(t, 60.0, priority=3), t.make.id()
    [answer] = await t.store.ensure([(interval, job_id)], now=t.now)
    expect.that(
        answer is not None and answer.created and answer.id == job_id, "ensure answers the first copy as created", answer
    )
    job = await t.job(job_id)
    expect.same_job(job, pending(interval.copy(job_id, 0.0), t.now), "the first copy is made after the template, due now")
    expect.equal(
        (job.schedule, job.key), ("every:report", Key("schedule", "every:report")), "a copy carries its schedule's name and key"
    )


@intervals
async def an_unfinished_copy_is_kept(t: Trial) -> None:
    """Registering again, at each start of each process, makes no second copy: pending, running or waiting to retry (T4)."""
    interval = _every(t)
    held = await _started(t, interval)
    states: tuple[Outcome | None, ...] = (None, Released(), RetryAfter(30.0, "E: no"))
    for outcome in states:
        if outcome is not None:
            await t.end(held, outcome)
        before = await t.everything()
        expect.equal(await _ensure(t, interval), None, "ensure answers None where an unfinished copy exists")
        await t.unchanged(before, "ensure leaves the unfinished copy as it is")
        held = await t.hold(held.job.id) if isinstance(outcome, Released) else held


@intervals
async def a_restart_keeps_the_due_time(t: Trial) -> None:
    """A copy that waits keeps its due time, however often the interval is registered anew meanwhile (T2, T4)."""
    interval = _every(t, 3600.0, "r")
    await _ensure(t, interval)
    copy = expect.one(await _copies(t, "r"), "there is one unfinished copy of the interval")
    await t.end(await t.hold(copy.id), Done(), interval.copy(t.make.id(), interval.seconds))
    due = t.at(3600)
    for _ in range(2):
        t.advance(1200)
        await _ensure(t, _every(t, 3600.0, "r"))
        waiting = expect.one(await _copies(t, "r"), "there is one waiting copy of the interval")
        expect.equal(waiting.run_at, due, "registering the same interval again does not push its copy away")


@intervals
async def the_next_copy_comes_with_the_end_of_the_last(t: Trial) -> None:
    """Done or dead, the next copy is stored in the same step, due one interval after that moment (T1)."""
    interval = _every(t, 60.0)
    held = await _started(t, interval)
    for outcome in (Done(), Dead("E: no")):
        t.advance(7)
        following = interval.copy(t.make.id(), interval.seconds)
        await t.end(held, outcome, following)
        copy = expect.one(await _copies(t), "there is one unfinished copy of the interval")
        expect.same_job(copy, pending(following, t.now), f"with {outcome} the next copy is stored, due an interval after now")
        t.advance(60)
        held = await t.hold(copy.id)


@intervals
async def an_attempt_that_is_not_the_last_makes_no_copy(t: Trial) -> None:
    """RetryAfter and Released leave the same copy unfinished, and store no other beside it (T1, T4)."""
    interval = _every(t, 60.0)
    held = await _started(t, interval)
    for outcome in (RetryAfter(0.0, "E: no"), Released()):
        await t.end(held, outcome, interval.copy(t.make.id(), 60.0))
        expect.equal([job.id for job in await _copies(t)], [held.job.id], f"{outcome} makes no next copy")
        held = await t.hold(held.job.id)


@intervals
async def a_late_result_makes_no_copy(t: Trial) -> None:
    """An ending whose claim no longer holds stores no next copy either (E22, T1)."""
    interval = _every(t, 60.0)
    held = await _started(t, interval)
    await t.end(held, Released())
    expect.that(not await t.finish(held, Done(), interval.copy(t.make.id(), 60.0)), "a late result is refused")
    expect.equal([job.id for job in await _copies(t)], [held.job.id], "a refused result stores no next copy")


@intervals
async def reclaiming_makes_the_next_copy_too(t: Trial) -> None:
    """A copy that dies by its lease is followed by the next in the same step; one that goes round again is not (T1, E21)."""
    interval = _every(t, 60.0)
    for outcome, copies in ((RetryAfter(0.0, "E"), 0), (Dead("E"), 1)):
        await _ensure(t, interval)
        copy = expect.one(await _copies(t), "there is one unfinished copy of the interval")
        await t.hold(copy.id)
        t.advance(100)
        expired = expect.one(await t.store.expired(10, now=t.now), "expired answers the one running job whose lease is past")
        following = interval.copy(t.make.id(), 60.0)
        await t.reclaim(Reclaim(expired, outcome, following))
        expect.equal(len(await t.store.get([following.id])), copies, f"reclaiming with {outcome} stores {copies} next copies")


@intervals
async def there_is_never_a_second_unfinished_copy(t: Trial) -> None:
    """Where a copy is unfinished already, a redriven old one that ends adds none: its next copy is left out (T4, T11)."""
    interval = _every(t, 60.0)
    held = await _started(t, interval)
    await t.end(held, Dead("E: no"), interval.copy(t.make.id(), 60.0))
    await t.store.redrive(JobFilter(ids=[held.job.id]), RedrivePolicy.RESET, now=t.now)
    waiting = expect.one(
        [job for job in await _copies(t) if job.id != held.job.id], "there is one waiting copy of the interval"
    )
    expect.that(
        await t.finish(await t.hold(held.job.id), Done(), interval.copy(t.make.id(), 60.0)), "the redriven old copy is finished"
    )
    expect.equal([job.id for job in await _copies(t)], [waiting.id], "there is one unfinished copy, the one that waited")


@intervals
async def after_an_outage_it_runs_once(t: Trial) -> None:
    """Across many missed intervals one copy waits, and the next is due an interval after it ran (T1)."""
    interval = _every(t, 60.0)
    held = await _started(t, interval)
    await t.end(held, Done(), interval.copy(t.make.id(), 60.0))
    t.advance(60 * 50 + 5)
    await _ensure(t, interval)
    claimed = await t.claimable()
    expect.equal(len(claimed), 1, "after fifty missed intervals one copy is claimed")


@intervals
async def a_deleted_copy_is_put_back_due_as_before(t: Trial) -> None:
    """Deleting the pending copy does not stop the interval: it is put back, due when the deleted one was (T3)."""
    interval = _every(t, 3600.0)
    held = await _started(t, interval)
    await t.end(held, Done(), interval.copy(t.make.id(), 3600.0))
    due = t.at(3600)
    for _ in range(2):
        t.advance(60)
        expect.equal(
            await t.store.delete(JobFilter(states=frozenset({State.PENDING})), now=t.now), 1, "the pending copy is deleted"
        )
        answer = await _ensure(t, interval)
        expect.that(answer is not None and answer.created, "ensure puts a deleted copy back", answer)
        copy = expect.one(await _copies(t), "there is one unfinished copy of the interval")
        expect.equal(copy.run_at, due, "the copy that is put back is due when the deleted one was")


@intervals
async def a_deleted_first_copy_is_put_back_too(t: Trial) -> None:
    """The first copy, deleted before it ran, is put back, due when it was (T3)."""
    interval = _every(t, 3600.0)
    await _ensure(t, interval)
    due = t.now
    t.advance(10)
    await t.store.delete(JobFilter(), now=t.now)
    await _ensure(t, interval)
    copy = expect.one(await _copies(t), "there is one unfinished copy of the interval")
    expect.equal(copy.run_at, due, "the first copy is put back due when it was")


@intervals
async def a_copy_that_was_run_now_and_deleted_is_due_when_it_was_hurried(t: Trial) -> None:
    """The due time that counts is the last one of the deleted copy (T3)."""
    interval = _every(t, 3600.0)
    held = await _started(t, interval)
    await t.end(held, Done(), interval.copy(t.make.id(), 3600.0))
    t.advance(10)
    await t.store.run_now(JobFilter(), now=t.now)
    hurried = t.now
    await t.store.delete(JobFilter(states=frozenset({State.PENDING})), now=t.now)
    t.advance(10)
    await _ensure(t, interval)
    copy = expect.one(await _copies(t), "there is one unfinished copy of the interval")
    expect.equal(copy.run_at, hurried, "the copy that is put back is due when the deleted one was last due")


@intervals
async def the_last_registration_wins(t: Trial) -> None:
    """Registered again under the same name, interval and payload are the new ones, and the waiting copy stays (T2)."""
    await _ensure(t, _every(t, 60.0, payload=1))
    expect.equal(await _ensure(t, _every(t, 90.0, payload=2)), None, "the waiting copy stays")
    copy = expect.one(await _copies(t), "there is one unfinished copy of the interval")
    expect.equal(copy.payload, 1, "the waiting copy keeps its payload")
    remembered = expect.one(await t.store.intervals(["every:report"]), "the interval is remembered")
    expect.equal((remembered.seconds, remembered.job.payload_json), (90.0, "2"), "the last registration is remembered")
    await t.store.delete(JobFilter(), now=t.now)
    await _ensure(t, _every(t, 90.0, payload=2))
    copy = expect.one(await _copies(t), "there is one unfinished copy of the interval")
    expect.equal(copy.payload, 2, "the next copy has the new payload")


@intervals
async def of_one_interval_twice_in_a_call_the_last_wins(t: Trial) -> None:
    """One call with the same name twice makes one copy, and remembers the last (T2, T4)."""
    first, last = _every(t, 60.0, payload=1), _every(t, 90.0, payload=2)
    await t.store.ensure([(first, t.make.id()), (last, t.make.id())], now=t.now)
    expect.equal(len(await _copies(t)), 1, "one copy is made of an interval that is given twice")
    remembered = expect.one(await t.store.intervals(["every:report"]), "the interval is remembered")
    expect.equal(remembered.seconds, 90.0, "the last of one call wins")


@intervals
async def intervals_answers_what_is_remembered(t: Trial) -> None:
    """Each interval comes back with its seconds and its template, in the order asked for; unknown names are left out (T1)."""
    template = t.new("a", {"z": [1, {}], "a": []}, queue="q", priority=-5, max_attempts=7)
    a, b = Interval.of(0.25, template), Interval.of(86_400.5, t.new("b"))
    answers = await t.store.ensure([(a, t.make.id()), (b, t.make.id())], now=t.now)
    expect.equal([one.created for one in answers if one is not None], [True, True], "ensure answers each interval in its place")
    found = await t.store.intervals(["every:b", "every:nobody", "every:a"])
    expect.equal(
        [one.schedule for one in found], ["every:b", "every:a"], "intervals come in the order asked for, without the unknown"
    )
    expect.equal([one.seconds for one in found], [86_400.5, 0.25], "an interval's seconds come back exactly")
    _same_template(found[1].job, a.job)
    expect.equal(await t.store.intervals([]), [], "no name, no interval")


def _same_template(actual: NewJob, expected: NewJob) -> None:
    fields = ("name", "queue", "priority", "max_attempts", "key", "schedule")
    for field in fields:
        expect.equal(getattr(actual, field), getattr(expected, field), f"the template's {field} comes back")
    expect.same_json(actual.payload_json, expected.payload_json, "the template's payload comes back as it was")


@intervals
async def ensuring_mixes_new_and_waiting_intervals(t: Trial) -> None:
    """One call answers each interval in its place: the new copy, or None (T4)."""
    await _ensure(t, _every(t, name="a"))
    ids = [t.make.id() for _ in range(3)]
    batch = [(_every(t, name=name), job_id) for name, job_id in zip("bac", ids, strict=True)]
    answers = await t.store.ensure(batch, now=t.now)
    expect.equal([one and one.id for one in answers], [ids[0], None, ids[2]], "each interval is answered in its place")
    expect.equal(await t.store.ensure([], now=t.now), [], "no interval, no answer")


@intervals
async def many_processes_register_one_copy(t: Trial) -> None:
    """However many register the same interval at once, one copy is made (T4)."""
    interval = _every(t)
    answers = await asyncio.gather(*(t.store.ensure([(interval, t.make.id())], now=t.now) for _ in range(12)))
    created = [one for answer in answers for one in answer if one is not None]
    expect.equal(len(created), 1, "of twelve registrations at once one makes the copy")
    expect.equal(len(await _copies(t)), 1, "there is one unfinished copy")


@intervals
async def a_job_that_is_enqueued_by_hand_is_no_copy(t: Trial) -> None:
    """A job of the same name without the schedule's key neither counts as the copy nor is kept away by it (T4)."""
    await t.make.pending("report")
    answer = await _ensure(t, _every(t))
    expect.that(answer is not None and answer.created, "a job enqueued by hand does not stand in for the copy")
    await t.make.pending("report")
    expect.equal(len(await _copies(t)), 3, "the copy keeps no other job of its name away")
