"""The fence of a move: a mark closes a store at once and entirely, and lets what runs come to its end (S13)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from treadle.core.errors import StoreError, StoreMoved, StoreUnavailable
from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Job, State
from treadle.core.outcome import Done
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Schedule
from treadle.core.store import Demand, Document, Firing, Reclaim
from treadle.core.transfer import Counts, Mark, Movable, Side, Stage
from treadle.testing.contract import ends, expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

fence = Group[Trial]("fence")


def _changes(t: Trial, store: Movable, job: Job, dead: Job, schedule: Schedule) -> dict[str, Callable[[], Awaitable[object]]]:
    """Every call that would change something."""
    new = t.new("job", dedupe_key="another")
    firing = Firing(schedule, t.at(99), schedule.firing(t.make.id()))
    return {
        "enqueue": lambda: store.enqueue([new], now=t.now),
        "enqueue of what is held": lambda: store.enqueue([t.new(job.name, id=job.id)], now=t.now),
        "claim": lambda: t.claim(Demand(5)),
        "ensure": lambda: store.ensure([(ends.interval(t), t.make.id())], now=t.now),
        "fire": lambda: store.fire([firing], now=t.now),
        "redrive": lambda: store.redrive(JobFilter(ids=(dead.id,)), RedrivePolicy.RESET, now=t.now),
        "run_now": lambda: store.run_now(JobFilter(ids=(job.id,)), now=t.now),
        "delete": lambda: store.delete(EVERYTHING, now=t.now),
        "put_schedule": lambda: store.put_schedule(replace(schedule, paused=True)),
        "delete_schedule": lambda: store.delete_schedule(schedule.name),
        "put_document": lambda: store.put_document("ns", "key", 2, now=t.now),
        "delete_document": lambda: store.delete_document("ns", "key", now=t.now),
    }


async def _refused(call: Callable[[], Awaitable[object]], kind: type[StoreError], words: str) -> None:
    try:
        got = await call()
    except StoreError as error:
        expect.that(type(error) is kind, f"{words} raises {kind.__name__}", error)
        expect.that("the 'second' — ü" in str(error), f"{words} names the other store", error)
    else:
        expect.that(False, f"{words} is refused", got)


@fence
async def a_store_that_took_part_in_no_move_has_no_mark(t: Trial) -> None:
    """There is none at first, and the tables are there."""
    store = ends.movable(t)
    expect.equal(await store.get_mark(), None, "a new store has no mark")
    expect.equal(await store.founded(), True, "a store in use has its tables")


@fence
async def a_mark_is_put_only_over_the_one_expected(t: Trial) -> None:
    """Compare and set; every field comes back."""
    store = ends.movable(t)
    before = Mark("move-0", Side.SOURCE, Stage.OVER, "elsewhere")
    mark = Mark("move-1", Side.TARGET, Stage.SEALED, ends.OTHER, emptying=True, base=Counts(1, 2, 3, 4, 5, 6), before=before)
    expect.equal(await store.put_mark(mark, expect=before), False, "a mark that is not there is not replaced")
    expect.equal(await store.get_mark(), None, "what was refused changed nothing")
    expect.equal(await store.put_mark(mark, expect=None), True, "None expects that there is none")
    expect.equal(await store.get_mark(), mark, "a mark comes back as it was put")
    expect.equal(await store.put_mark(None, expect=replace(mark, base=None)), False, "every field of the mark counts")
    expect.equal(await store.put_mark(None, expect=mark), True, "a mark can be taken away")
    expect.equal(await store.get_mark(), None, "then there is none")


@fence
async def a_store_is_not_sealed_while_a_job_runs(t: Trial) -> None:
    """SEALED is refused as long as a job runs, however old its lease is."""
    store = ends.movable(t)
    held = await t.make.expired("job")
    draining = ends.source(Stage.DRAINING)
    expect.equal(await store.put_mark(draining, expect=None), True, "DRAINING does not wait for running jobs")
    sealed = replace(draining, stage=Stage.SEALED)
    expect.equal(await store.put_mark(sealed, expect=draining), False, "a store in which a job runs is not sealed")
    expect.equal(await store.get_mark(), draining, "what was refused changed nothing")
    await t.end(held, Done())
    expect.equal(await store.put_mark(sealed, expect=draining), True, "once none runs, it is")


# -- the fence


@fence
async def a_source_refuses_every_change_and_names_the_other(t: Trial) -> None:
    """From the moment it is marked until it is opened again, in every stage; nothing is changed, and reading goes on."""
    store = ends.movable(t)
    job, dead = await t.make.pending("job", dedupe_key="k"), await t.make.dead("dead")
    schedule = await store.put_schedule(replace(ends.schedule(t), paused=False, next_at=t.now))
    assert schedule is not None
    await store.put_document("ns", "key", 1, now=t.now)
    before = await t.everything()
    for stage in Stage:
        await ends.marked(t, ends.source(stage))
        for name, call in _changes(t, store, job, dead, schedule).items():
            await _refused(call, StoreMoved, f"{name} in a source that is {stage}")
    await t.unchanged(before, "a refused call changes nothing")
    expect.equal(await store.get_schedule(schedule.name), schedule, "no schedule is changed")
    expect.equal(await store.get_document("ns", "key", now=t.now), Document("key", 1, 1), "no document is changed")
    expect.equal((await store.stats(now=t.now)).pending, 1, "the aggregate is still answered")
    expect.same_tally(await store.tally(), before, "jobs are still counted")
    expect.equal(await store.due(["default"], now=t.now), {"default"}, "what is due is still answered")
    await ends.marked(t, None)
    for name, call in _changes(t, store, job, dead, schedule).items():
        try:
            await call()
        except StoreError as error:
            expect.that(False, f"once the mark is gone, {name} works again", error)


@fence
async def a_target_refuses_every_change_until_the_move_is_over(t: Trial) -> None:
    """With an error that says to wait; then it is open, and knows of the move."""
    store = ends.movable(t)
    job, dead = await t.make.pending("job", dedupe_key="k"), await t.make.dead("dead")
    schedule = await store.put_schedule(replace(ends.schedule(t), paused=False, next_at=t.now))
    assert schedule is not None
    await store.put_document("ns", "key", 1, now=t.now)
    before = await t.everything()
    for stage in (Stage.DRAINING, Stage.SEALED):
        await ends.marked(t, Mark("move-1", Side.TARGET, stage, ends.OTHER))
        for name, call in _changes(t, store, job, dead, schedule).items():
            await _refused(call, StoreUnavailable, f"{name} in a target that is {stage}")
    await t.unchanged(before, "a refused call changes nothing")
    over = Mark("move-1", Side.TARGET, Stage.OVER, ends.OTHER)
    await ends.marked(t, over)
    await t.enqueue(t.new("job"))
    expect.equal(len(await t.claimable()), 2, "a target whose move is over is a store like any other")
    expect.equal(await store.get_mark(), over, "and it remembers the move")


@fence
async def a_claim_is_refused_also_where_nothing_is_due(t: Trial) -> None:
    """A worker that has nothing to do must be told too."""
    store = await ends.marked(t, ends.source(Stage.OVER))
    await _refused(lambda: t.claim(Demand(1)), StoreMoved, "a claim of any name in a store without a job")
    await _refused(lambda: t.claim(Demand(1, ("mail",), {"job": 5})), StoreMoved, "a claim by name in a store without a job")
    await _refused(lambda: store.ensure([(ends.interval(t), t.make.id())], now=t.now), StoreMoved, "ensure in an empty store")


@fence
async def while_a_store_drains_running_jobs_end(t: Trial) -> None:
    """Finish, renew and reclaim go on, with failures, keys and the next copies of intervals."""
    store = ends.movable(t)
    interval = ends.interval(t)
    await store.ensure([(interval, t.make.id())], now=t.now)
    tick = await t.hold((await t.everything())[0].id)
    failing, kept, left = await t.make.running("failing"), await t.make.running("kept"), await t.make.running("left")
    await ends.marked(t, ends.source(Stage.DRAINING))
    t.advance(1.0)
    expect.equal(await store.renew([kept.claim], 600.0, now=t.now), {kept.claim}, "a running job is leased anew")
    following = interval.copy(t.make.id(), interval.seconds)
    await t.end(tick, Done(), following)
    expect.equal((await t.job(following.id)).state, State.PENDING, "an interval goes on in the step that ends its run")
    ended = await t.end(failing, Done("ok"))
    expect.equal((ended.state, ended.note), (State.DONE, "ok"), "a running job ends")
    t.advance(120.0)
    [expired] = await store.expired(10, now=t.now)
    expect.equal(expired.claim, left.claim, "an expired lease is told")
    expect.equal(await t.reclaim(Reclaim(expired, Done())), True, "and taken back")


@fence
async def nothing_slips_past_the_mark(t: Trial) -> None:
    """Of many that enqueue while the mark comes, what was answered is stored when it is there, and nothing comes after."""
    store = ends.movable(t)
    created: list[str] = []
    begun = asyncio.Event()

    async def enqueue() -> None:
        while True:
            try:
                [answer] = await store.enqueue([t.new("job")], now=t.now)
            except StoreMoved:
                return
            created.append(answer.id)
            if len(created) > 20:
                begun.set()
            await asyncio.sleep(0)  # a store in memory never waits by itself

    enqueuers = [asyncio.create_task(enqueue()) for _ in range(8)]
    await begun.wait()
    mark = ends.source(Stage.SEALED)
    expect.equal(await store.put_mark(mark, expect=None), True, "a store without running jobs is sealed")
    stored = {job.id for job in await t.everything()}
    await asyncio.gather(*enqueuers)
    after = {job.id for job in await t.everything()}
    expect.that(stored == after, "what is stored when the mark is there is all there will be", len(after - stored))
    expect.that(stored == set(created), "and it is what was answered as stored", set(created) ^ stored)
