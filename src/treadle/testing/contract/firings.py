"""Firings of cron schedules: in one step with their jobs, each time once, and never two unfinished ones (T11, T12)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from treadle.core.filter import JobFilter
from treadle.core.job import UNFINISHED, Key
from treadle.core.outcome import Dead, Done, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Firing
from treadle.testing.contract import expect
from treadle.testing.contract.nightly import MANY, NAME, fire, fired, is_now, nightly, stored, there
from treadle.testing.contract.trial import Trial, pending
from treadle.testing.factory import Held
from treadle.testing.suite import Group

firings = Group[Trial]("firings")


@firings
async def a_firing_enqueues_its_job_and_advances_the_schedule(t: Trial) -> None:
    """One step: the job is pending, due now, carries the schedule; next_at, last_at and the revision move (T12)."""
    schedule = await stored(t, nightly(t, due_in=-90))
    other = await stored(t, nightly(t, "other", due_in=-90))
    new = schedule.firing(t.make.id())
    [answer] = await t.store.fire([Firing(schedule, t.at(3600.000001), new)], now=t.now)
    expect.that(answer is not None and answer.created, "a firing is answered with its new job", answer)
    assert answer is not None
    expect.equal(answer.id, new.id, "a firing's job has the id that was given")
    job = await t.job(new.id)
    expect.same_job(job, pending(new, t.now), "the job is made after the template, due now and not when the schedule was")
    expect.same_job(answer.job, job, "the job is answered as it is stored")
    expect.equal((job.schedule, job.key), ("cron:nightly", Key("schedule", "cron:nightly")), "it carries its schedule")
    advanced = replace(schedule, next_at=t.at(3600.000001), last_at=t.now, revision=schedule.revision + 1)
    expect.equal(await there(t), advanced, "the schedule is advanced, at its next revision; its last run is now")
    expect.equal(await there(t, "other"), other, "no other schedule is")
    expect.same_ids(await t.claimable(queues=("nights",)), [job], "the job can be claimed")


@firings
async def a_batch_is_answered_in_its_order(t: Trial) -> None:
    """Each firing is answered in its place: the new job, the unfinished one, or None (T11, T12)."""
    read = {name: await stored(t, nightly(t, name)) for name in "cabd"}
    await stored(t, replace(read["a"], paused=True))
    unfinished = await fired(t, read["b"], t.at(60))
    read["b"] = await there(t, "b")
    batch = [Firing(read[name], t.at(number), read[name].firing(t.make.id())) for number, name in enumerate("dbac")]
    answers = await t.store.fire(batch, now=t.now)
    expect.equal(
        [answer and (answer.id, answer.created) for answer in answers],
        [(batch[0].job.id, True), (unfinished.id, False), None, (batch[3].job.id, True)],
        "fire answers each firing in its place",
    )
    moved = [(await there(t, name)).next_at for name in "dbac"]
    expect.equal(moved, [t.at(0), t.at(1), t.now, t.at(3)], "each schedule is advanced to its own next time, or not at all")
    expect.equal(await t.store.fire([], now=t.now), [], "no firing, no answer")


@firings
async def the_same_time_twice_in_a_call_fires_once(t: Trial) -> None:
    """Firings of one call hold against each other as those of two calls do (T12)."""
    read = await stored(t, nightly(t))
    batch = [Firing(read, t.at(60 + number), read.firing(t.make.id())) for number in range(2)]
    batch.append(batch[0])
    answers = await t.store.fire(batch, now=t.now)
    expect.equal([answer and answer.created for answer in answers], [True, None, None], "the first of one call fires")
    after = await there(t)
    expect.equal((after.next_at, after.revision), (t.at(60), read.revision + 1), "and it alone advances the schedule")


@firings
async def a_firing_that_is_over_does_not_hinder_another_of_its_schedule(t: Trial) -> None:
    """In one call, what was read before a change does nothing, and what was read after it fires, in any order (T12)."""
    for late in (0, 1):
        old = await stored(t, nightly(t, f"s{late}", job=f"job{late}"))
        new = await stored(t, replace(old, expression="0 4 * * *"))
        batch = [Firing(one, t.at(60), one.firing(t.make.id())) for one in ((old, new) if late else (new, old))]
        answers = await t.store.fire(batch, now=t.now)
        made = [answer and answer.id for answer in answers]
        expect.equal(made[late], batch[late].job.id, "the firing that was read after the change fires")
        expect.equal(made[1 - late], None, "the firing that was read before the change does not")


@firings
async def many_fire_in_one_call(t: Trial) -> None:
    """A call fires all that it is given, however many (T12)."""
    read = await asyncio.gather(*(stored(t, nightly(t, f"s{number}")) for number in range(MANY)))
    answers = await t.store.fire([Firing(one, t.at(60), one.firing(t.make.id())) for one in read], now=t.now)
    made = [answer.job.schedule for answer in answers if answer is not None and answer.created]
    expect.equal(made, [f"cron:s{number}" for number in range(MANY)], f"{MANY} schedules fire in one call")
    expect.equal((await t.store.due_schedules(1, now=t.now)).next_in, 60.0, "and all are advanced")


@firings
async def a_firing_that_was_read_before_a_change_does_nothing(t: Trial) -> None:
    """Neither job nor advance where next_at, the revision or the pause is no longer what was read, or it is gone (T9, T12)."""
    read = await stored(t, nightly(t))
    await fire(t, read, t.at(3600))
    [job] = await t.everything()
    expect.equal(await fire(t, read, t.at(7200)), None, "the same due time fires once")
    changed = await stored(t, replace(read, expression="0 4 * * *"))
    expect.equal(await fire(t, read, t.at(7200)), None, "nothing fires for the old expression")
    paused = await stored(t, replace(changed, paused=True))
    expect.equal(await fire(t, paused, t.at(7200)), None, "a paused schedule does not fire")
    expect.equal(await fire(t, replace(paused, paused=False), t.at(7200)), None, "even if it was read before the pause")
    expect.equal(await t.store.get_schedule(NAME), paused, "what did not fire changed nothing")
    await t.store.delete_schedule(NAME)
    expect.equal(await fire(t, paused, t.at(7200)), None, "a deleted schedule does not fire")
    expect.equal(await t.store.get_schedule(NAME), None, "nor does it come back")
    await t.unchanged([job], "a firing that does nothing enqueues nothing, and deleting a schedule leaves its jobs")


@firings
async def a_firing_that_was_read_before_a_new_beginning_does_nothing(t: Trial) -> None:
    """A schedule deleted and made anew has the same revision, but is due at another time, or at none (T12)."""
    read = await stored(t, nightly(t))
    for next_at in (t.at(3600), t.at(0.000001), None):
        await t.store.delete_schedule(NAME)
        anew = await stored(t, replace(read, next_at=next_at))
        expect.equal(anew.revision, read.revision, "a schedule that is made anew begins at the same revision")
        expect.equal(await fire(t, read, t.at(7200)), None, "nothing fires for the old schedule's time")
        expect.equal(await there(t), anew, "and the new one is not advanced")
    await t.unchanged([], "a firing that does nothing enqueues nothing")


@firings
async def what_was_read_before_a_firing_is_not_put_back(t: Trial) -> None:
    """A change that was made from what was there before the firing would have the same time fire again (T12)."""
    read = await stored(t, nightly(t))
    await fire(t, read, t.at(3600))
    after = await there(t)
    late = await t.store.put_schedule(replace(read, job=replace(read.job, priority=9)), expect=read.revision)
    expect.equal(late, None, "a revision from before the firing replaces nothing")
    expect.equal(await there(t), after, "the firing stands")


@firings
async def the_last_firing_ends_the_schedule(t: Trial) -> None:
    """A firing after which there is none any more leaves no next run: nothing is due, and the schedule stays (T9)."""
    read = await stored(t, nightly(t))
    await fired(t, read, None)
    after = await there(t)
    expect.equal(after, replace(read, next_at=None, last_at=t.now, revision=2), "the schedule stays, without a next run")
    due = await t.store.due_schedules(10, now=t.at(1))
    expect.equal((list(due.schedules), due.next_in), ([], None), "a schedule that has ended is never due")


@firings
async def while_a_firing_is_unfinished_the_next_is_skipped(t: Trial) -> None:
    """Pending or running: the schedule advances, no job is made, last_at stays. Once done or dead, it fires again (T11)."""
    schedule = await stored(t, nightly(t))
    first = await fire(t, schedule, t.at(60))
    assert first is not None
    for outcome in (Done(), Dead("no")):
        holder = (await t.everything())[0]
        held: Held | None = None
        for _ in range(2):
            t.advance(60)
            read = await there(t)
            before = await t.everything()
            answer = await fire(t, read, t.at(60))
            expect.that(
                answer is not None and not answer.created and answer.id == holder.id,
                "a skipped firing is answered with the unfinished one",
                answer,
            )
            assert answer is not None
            expect.same_job(answer.job, await t.job(holder.id), "the unfinished one is answered as it is stored")
            await t.unchanged(before, "a skipped firing makes no job, and leaves the unfinished one alone")
            advanced = replace(read, next_at=t.at(60), revision=read.revision + 1)
            expect.equal(await there(t), advanced, "a skipped firing advances the schedule and nothing else")
            held = held or await t.hold(holder.id)
        assert held is not None
        await t.finish(held, outcome)
        t.advance(60)
        answer = await fire(t, await there(t), t.at(60))
        expect.that(answer is not None and answer.created, "once the last one is finished, the next fires", answer)


@firings
async def a_firing_that_waits_for_its_next_try_is_unfinished(t: Trial) -> None:
    """A failed attempt ends no firing: while it is to be tried again, the next is skipped (T11)."""
    first = await fired(t, await stored(t, nightly(t)), t.at(60))
    await t.end(await t.hold(first.id), RetryAfter(3600.0, "E: no"))
    answer = await fire(t, await there(t), t.at(120))
    expect.equal(answer and (answer.id, answer.created), (first.id, False), "a firing that is to be tried again is unfinished")


@firings
async def a_redriven_firing_blocks_no_later_one(t: Trial) -> None:
    """A dead firing that is sent round again is a job like any other (T11)."""
    answer = await fired(t, await stored(t, nightly(t)), t.at(60))
    await t.finish(await t.hold(answer.id), Dead("no"))
    await t.store.redrive(JobFilter(ids=(answer.id,)), RedrivePolicy.RESET, now=t.now)
    again = await fire(t, await there(t), t.at(120))
    expect.that(again is not None and again.created, "the next firing is made beside the redriven one", again)


@firings
async def a_firing_that_was_deleted_blocks_no_later_one(t: Trial) -> None:
    """Deleting a waiting firing lets the next one come, and its schedule is the same (T11, T14)."""
    await fired(t, await stored(t, nightly(t)), t.at(60))
    after = await there(t)
    expect.equal(await t.store.delete(JobFilter(states=UNFINISHED), now=t.now), 1, "the waiting firing is deleted")
    expect.equal(await there(t), after, "deleting a firing changes no schedule")
    await fired(t, after, t.at(120))


@firings
async def a_schedule_that_is_made_anew_waits_for_the_firing_of_the_old_one(t: Trial) -> None:
    """The unfinished firing counts by the schedule's name, whoever made it: the old one here (T11)."""
    first = await fired(t, await stored(t, nightly(t)), t.at(60))
    await t.store.delete_schedule(NAME)
    answer = await fire(t, await stored(t, nightly(t)), t.at(60))
    expect.equal(answer and (answer.id, answer.created), (first.id, False), "the old one's firing is still unfinished")
    expect.equal((await there(t)).last_at, None, "and the new one has not run")


@firings
async def a_run_by_hand_is_a_firing(t: Trial) -> None:
    """A schedule's job that is enqueued beside its times keeps the next firing away, and is kept away by one (T14)."""
    read = await stored(t, nightly(t))
    [by_hand] = await t.enqueue(read.firing(t.make.id()))
    answer = await fire(t, read, t.at(60))
    expect.equal(answer and (answer.id, answer.created), (by_hand.id, False), "a run by hand keeps the next firing away")
    await t.end(await t.hold(by_hand.id), Done())
    first = await fired(t, await there(t), t.at(120))
    [by_hand] = await t.enqueue(read.firing(t.make.id()))
    expect.equal((by_hand.id, by_hand.created), (first.id, False), "a firing keeps a run by hand away")


@firings
async def a_job_of_the_same_name_is_no_firing(t: Trial) -> None:
    """Jobs enqueued by hand, without a key or with the same text as a key of another kind, keep no firing away (T11)."""
    read = await stored(t, nightly(t))
    for key in (None, Key("dedupe", "cron:nightly"), Key("idempotency", "cron:nightly")):
        await t.make.pending("clean", queue="nights", key=key)
    await fired(t, read, t.at(60))
    expect.equal(len(await t.everything()), 4, "a firing is made beside other jobs of its name")


@firings
async def schedules_of_one_job_name_do_not_stand_in_each_others_way(t: Trial) -> None:
    """Each schedule skips by its own last firing, not by the job's name."""
    for name in ("one", "two"):
        await fired(t, await stored(t, nightly(t, name)), t.at(60))
    expect.equal(len(await t.everything()), 2, "two schedules, two jobs")


@firings
async def of_many_that_fire_the_same_time_one_wins(t: Trial) -> None:
    """However many schedulers there are, each due time gives one job, and all others are told that it is over (T12)."""
    for round_ in range(5):
        read = [await stored(t, nightly(t, f"s{number}", job=f"job{number}")) for number in range(10)]
        rounds = [t.store.fire([Firing(one, t.at(60), one.firing(t.make.id())) for one in read], now=t.now) for _ in range(8)]
        answers = await asyncio.gather(*rounds)
        won = [answer for one in answers for answer in one if answer is not None]
        expect.equal(len(won), 10, f"eight schedulers fire ten schedules: ten answers in round {round_}")
        expect.that(all(answer.created for answer in won), "each of them is a new job")
        for schedule in read:
            revision = (await there(t, schedule.name)).revision
            expect.equal(revision, schedule.revision + 1, "a schedule that eight fire is advanced once")
        for answer in won:
            await t.finish(await t.hold(answer.id), Done())


@firings
async def a_change_and_a_firing_never_both_win(t: Trial) -> None:
    """A pause made from what the scheduler read too comes first, and nothing fires, or is told to look again (T12)."""
    for turn in range(6):
        read = await stored(t, nightly(t, f"s{turn}", job=f"job{turn}"))
        new = read.firing(t.make.id())
        paused = t.store.put_schedule(replace(read, paused=True), expect=read.revision)
        firing = t.store.fire([Firing(read, t.at(60), new)], now=t.now)
        if turn % 2:
            put, [answer] = await asyncio.gather(paused, firing)
        else:
            [answer], put = await asyncio.gather(firing, paused)
        expect.that((put is None) != (answer is None), "either the change or the firing wins", (put, answer))
        after = await there(t, read.name)
        expect.equal((after.paused, after.revision), (answer is None, read.revision + 1), "and it alone is stored")
        expect.equal(len(await t.store.get([new.id])), 0 if answer is None else 1, "a job is there if the firing won")


@firings
async def a_firing_is_seen_whole_or_not_at_all(t: Trial) -> None:
    """Whoever looks meanwhile sees no job of a schedule that is not advanced, nor one that is advanced without a job (T12)."""
    for turn in range(5):
        read = await stored(t, nightly(t, f"s{turn}", job=f"job{turn}"))
        new = read.firing(t.make.id())
        firing = asyncio.create_task(t.store.fire([Firing(read, t.at(60), new)], now=t.now))
        try:
            over = False
            while not over:
                await asyncio.sleep(0)
                over = firing.done()
                before = await t.store.get([new.id])
                advanced = (await there(t, read.name)).revision > read.revision
                expect.that(advanced or not before, "where the job is there, the schedule is advanced")
                after = bool(await t.store.get([new.id]))
                expect.that(after or not advanced, "where the schedule is advanced, the job is there")
        finally:
            await firing


@firings
async def without_a_moment_a_firing_goes_by_the_stores_own_clock(t: Trial) -> None:
    """The job is due, and the schedule has last fired, at the store's own now (S9)."""
    read = await stored(t, nightly(t))
    new = read.firing(t.make.id())
    await t.store.fire([Firing(read, t.at(60), new)])
    last_at = (await there(t)).last_at
    expect.that(is_now(last_at), "the last run is about now", last_at)
    expect.equal((await t.job(new.id)).run_at, last_at, "and the job is due at that moment")
