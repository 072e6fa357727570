"""Cron schedules: stored under a revision, and fired in one step with their jobs, each time once (T9 to T14)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

from treadle.core.cron import Cron
from treadle.core.filter import JobFilter
from treadle.core.job import Enqueued, Key, State
from treadle.core.outcome import Dead, Done
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Schedule
from treadle.core.store import Firing
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.factory import Held
from treadle.testing.suite import Group

schedules = Group[Trial]("schedules")


def _nightly(t: Trial, name: str = "nightly", *, due_in: float = 0.0, job: str = "clean") -> Schedule:
    template = replace(t.new(job, {"dry": False}), priority=3, max_attempts=7)
    return replace(Schedule.of(name, Cron("0 3 * * *", "Europe/Berlin"), template), next_at=t.at(due_in))


async def _stored(t: Trial, schedule: Schedule) -> Schedule:
    stored = await t.store.put_schedule(schedule)
    assert stored is not None, "a schedule that is stored in any case is answered"
    return stored


async def _fire(t: Trial, schedule: Schedule, next_at: datetime | None) -> Enqueued | None:
    answers = await t.store.fire([Firing(schedule, next_at, schedule.firing(t.make.id()))], now=t.now)
    expect.equal(len(answers), 1, "fire answers each firing in its place")
    return answers[0]


@schedules
async def a_schedule_comes_back_as_it_was_stored(t: Trial) -> None:
    """Every field of a schedule, its template and its moments included, is kept exactly."""
    template = replace(t.new("clean", {"ключ": ["😀", 1.5, None]}), queue="nights", priority=-4, max_attempts=9)
    wanted = replace(
        Schedule.of("plugin:x/nightly", Cron("*/30 * * * * *", "America/New_York", seconds=True), template),
        next_at=t.at(1.000001),
        last_at=t.at(-5),
        paused=True,
    )
    stored = await _stored(t, wanted)
    expect.equal(stored, replace(wanted, revision=1), "put_schedule answers the schedule as stored, at revision 1")
    expect.equal(await t.store.get_schedule(wanted.name), stored, "get_schedule answers what was stored")
    expect.equal(await t.store.get_schedule("other"), None, "a name that is not stored is None")
    never = await _stored(t, replace(wanted, name="never", next_at=None, last_at=None))
    expect.equal(await t.store.get_schedule("never"), never, "a schedule without a next or last run keeps none")


@schedules
async def a_schedule_is_put_only_over_the_revision_expected(t: Trial) -> None:
    """`expect` compares and sets; the revision goes up by one with each put."""
    wanted = _nightly(t)
    expect.equal(await t.store.put_schedule(wanted, expect=1), None, "where none is stored, revision 1 is not there")
    first = await t.store.put_schedule(wanted, expect=0)
    expect.that(first is not None and first.revision == 1, "expect=0 stores where none is", first)
    expect.equal(await t.store.put_schedule(wanted, expect=0), None, "expect=0 stores nothing where one is")
    second = await t.store.put_schedule(replace(wanted, paused=True), expect=1)
    expect.that(second is not None and second.revision == 2 and second.paused, "the expected revision is replaced", second)
    expect.equal(await t.store.put_schedule(wanted, expect=1), None, "an old revision replaces nothing")
    expect.equal(await t.store.get_schedule(wanted.name), second, "what was refused changed nothing")


@schedules
async def schedules_are_listed_by_name_and_deleted(t: Trial) -> None:
    """Listing goes by name in code-point order, with prefix, paging and limit; deleting answers whether it was there."""
    for name in ("b", "a", "a%", "a_b", "ab", "é", "😀"):
        await _stored(t, _nightly(t, name))
    names = [schedule.name for schedule in await t.store.list_schedules()]
    expect.equal(names, ["a", "a%", "a_b", "ab", "b", "é", "😀"], "schedules are listed by name")
    names = [schedule.name for schedule in await t.store.list_schedules(prefix="a", after="a", limit=2)]
    expect.equal(names, ["a%", "a_b"], "prefix, after and limit narrow the list, and % and _ are plain characters")
    expect.equal(await t.store.delete_schedule("a%"), True, "deleting answers that it was there")
    expect.equal(await t.store.delete_schedule("a%"), False, "deleting again answers that it was not")
    expect.equal(await t.store.get_schedule("a%"), None, "a deleted schedule is gone")
    expect.equal(len(await t.store.list_schedules()), 6, "the others stay")


@schedules
async def what_is_due_comes_earliest_first_with_the_time_of_the_next(t: Trial) -> None:
    """Due schedules at or before now, no paused and no ended ones, at most so many; and how long until the next."""
    for name, due_in in (("late", -60.0), ("now", 0.0), ("soon", 12.5), ("later", 99.0)):
        await _stored(t, _nightly(t, name, due_in=due_in))
    await _stored(t, replace(_nightly(t, "paused", due_in=-5.0), paused=True))
    await _stored(t, replace(_nightly(t, "ended"), next_at=None))
    due = await t.store.due_schedules(10, now=t.now)
    expect.equal([schedule.name for schedule in due.schedules], ["late", "now"], "what is due comes earliest first")
    expect.equal((due.now, due.next_in), (t.now, 12.5), "the answer says the store's now, and when the next one is due")
    due = await t.store.due_schedules(1, now=t.now)
    expect.equal([schedule.name for schedule in due.schedules], ["late"], "no more than the limit")
    expect.equal(due.next_in, 0.0, "more are due at once")
    due = await t.store.due_schedules(10, now=t.at(1000))
    expect.equal(due.next_in, None, "where none is left, there is no next time")


@schedules
async def a_store_without_schedules_has_none_due(t: Trial) -> None:
    """Nothing is due and nothing is next; and the store's own clock is near the machine's."""
    due = await t.store.due_schedules(10, now=t.now)
    expect.equal((due.now, list(due.schedules), due.next_in), (t.now, [], None), "nothing is due")
    own = (await t.store.due_schedules(0)).now
    expect.that(own.utcoffset() is not None, "the store's own now is an aware moment", own)


@schedules
async def a_firing_enqueues_its_job_and_advances_the_schedule(t: Trial) -> None:
    """One step: the job is pending, due now, carries the schedule; next_at, last_at and the revision move (T12)."""
    schedule = await _stored(t, _nightly(t))
    answer = await _fire(t, schedule, t.at(3600))
    expect.that(answer is not None and answer.created, "a firing is answered with its new job", answer)
    assert answer is not None
    job = await t.job(answer.id)
    expect.equal(
        (job.state, job.run_at, job.name, job.payload, job.priority, job.max_attempts),
        (State.PENDING, t.now, "clean", {"dry": False}, 3, 7),
        "the job is made after the template, due now",
    )
    expect.equal((job.schedule, job.key), ("cron:nightly", Key("schedule", "cron:nightly")), "it carries its schedule")
    after = await t.store.get_schedule("nightly")
    advanced = replace(schedule, next_at=t.at(3600), last_at=t.now, revision=schedule.revision + 1)
    expect.equal(after, advanced, "the schedule is advanced, at its next revision")


@schedules
async def a_firing_that_was_read_before_a_change_does_nothing(t: Trial) -> None:
    """Neither job nor advance where next_at, the revision or the pause is no longer what was read, or it is gone (T9, T12)."""
    read = await _stored(t, _nightly(t))
    await _fire(t, read, t.at(3600))
    [job] = await t.everything()
    expect.equal(await _fire(t, read, t.at(7200)), None, "the same due time fires once")
    changed = await _stored(t, replace(read, expression="0 4 * * *"))
    expect.equal(await _fire(t, read, t.at(7200)), None, "nothing fires for the old expression")
    paused = await _stored(t, replace(changed, paused=True))
    expect.equal(await _fire(t, paused, t.at(7200)), None, "a paused schedule does not fire")
    expect.equal(await _fire(t, replace(paused, paused=False), t.at(7200)), None, "even if it was read before the pause")
    expect.equal(await t.store.get_schedule("nightly"), paused, "what did not fire changed nothing")
    await t.store.delete_schedule("nightly")
    expect.equal(await _fire(t, paused, t.at(7200)), None, "a deleted schedule does not fire")
    await t.unchanged([job], "a firing that does nothing enqueues nothing")


@schedules
async def what_was_read_before_a_firing_is_not_put_back(t: Trial) -> None:
    """A change that was made from what was there before the firing would have the same time fire again (T12)."""
    read = await _stored(t, _nightly(t))
    await _fire(t, read, t.at(3600))
    fired = await t.store.get_schedule("nightly")
    late = await t.store.put_schedule(replace(read, job=replace(read.job, priority=9)), expect=read.revision)
    expect.equal(late, None, "a revision from before the firing replaces nothing")
    expect.equal(await t.store.get_schedule("nightly"), fired, "the firing stands")


@schedules
async def while_a_firing_is_unfinished_the_next_is_skipped(t: Trial) -> None:
    """Pending or running: the schedule advances, no job is made, last_at stays. Once done or dead, it fires again (T11)."""
    schedule = await _stored(t, _nightly(t))
    first = await _fire(t, schedule, t.at(60))
    assert first is not None
    for outcome in (Done(), Dead("no")):
        holder = (await t.everything())[0]
        held: Held | None = None
        for _ in range(2):
            t.advance(60)
            read = await t.store.get_schedule("nightly")
            assert read is not None
            answer = await _fire(t, read, t.at(60))
            expect.that(
                answer is not None and not answer.created and answer.id == holder.id,
                "a skipped firing is answered with the unfinished one",
                answer,
            )
            after = await t.store.get_schedule("nightly")
            advanced = replace(read, next_at=t.at(60), revision=read.revision + 1)
            expect.equal(after, advanced, "a skipped firing advances the schedule and nothing else")
            held = held or await t.hold(holder.id)
        assert held is not None
        await t.finish(held, outcome)
        t.advance(60)
        read = await t.store.get_schedule("nightly")
        assert read is not None
        answer = await _fire(t, read, t.at(60))
        expect.that(answer is not None and answer.created, "once the last one is finished, the next fires", answer)


@schedules
async def a_redriven_firing_blocks_no_later_one(t: Trial) -> None:
    """A dead firing that is sent round again is a job like any other (T11)."""
    schedule = await _stored(t, _nightly(t))
    answer = await _fire(t, schedule, t.at(60))
    assert answer is not None
    await t.finish(await t.hold(answer.id), Dead("no"))
    await t.store.redrive(JobFilter(ids=(answer.id,)), RedrivePolicy.RESET, now=t.now)
    read = await t.store.get_schedule("nightly")
    assert read is not None
    again = await _fire(t, read, t.at(120))
    expect.that(again is not None and again.created, "the next firing is made beside the redriven one", again)


@schedules
async def schedules_of_one_job_name_do_not_stand_in_each_others_way(t: Trial) -> None:
    """Each schedule skips by its own last firing, not by the job's name."""
    for name in ("one", "two"):
        schedule = await _stored(t, _nightly(t, name))
        answer = await _fire(t, schedule, t.at(60))
        expect.that(answer is not None and answer.created, f"schedule {name} fires", answer)
    expect.equal(len(await t.everything()), 2, "two schedules, two jobs")


@schedules
async def of_many_that_fire_the_same_time_one_wins(t: Trial) -> None:
    """However many schedulers there are, each due time gives one job (T12)."""
    for round_ in range(5):
        read = [await _stored(t, _nightly(t, f"s{number}", job=f"job{number}")) for number in range(10)]
        rounds = [t.store.fire([Firing(one, t.at(60), one.firing(t.make.id())) for one in read], now=t.now) for _ in range(8)]
        answers = await asyncio.gather(*rounds)
        won = [answer for one in answers for answer in one if answer is not None and answer.created]
        expect.equal(len(won), 10, f"eight schedulers fire ten schedules: ten jobs in round {round_}")
        for job in await t.everything():
            if job.state == State.PENDING:
                await t.finish(await t.hold(job.id), Done())


@schedules
async def a_clock_that_was_set_back_is_noticed(t: Trial) -> None:
    """A schedule that last fired more than a minute in the future is among the due ones, so that it is computed anew."""
    await _stored(t, replace(_nightly(t, "ahead", due_in=7200), last_at=t.at(3600)))
    await _stored(t, replace(_nightly(t, "jitter", due_in=7200), last_at=t.at(30)))
    due = await t.store.due_schedules(10, now=t.now)
    expect.equal([schedule.name for schedule in due.schedules], ["ahead"], "the clock ran ahead for one of them")
