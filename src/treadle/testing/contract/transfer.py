"""Moves between stores: what is kept is told whole, and put in elsewhere as it was (S13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from treadle.core.errors import Conflict
from treadle.core.filter import JobFilter
from treadle.core.job import Job, Key, State
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval
from treadle.core.store import Demand, Document
from treadle.core.transfer import Cargo, Counts, KeptDocument, KeptInterval, Stage
from treadle.testing.contract import ends, expect
from treadle.testing.contract.trial import Trial
from treadle.testing.factory import uuid7
from treadle.testing.suite import Group

transfer = Group[Trial]("transfer")


def _cargo(t: Trial, jobs: Sequence[Job]) -> Cargo:
    """The jobs, and one thing of each other kind."""
    document = KeptDocument("ns", Document("k", 1, 17))
    return Cargo(jobs, [KeptInterval(ends.interval(t), t.at(7))], [ends.schedule(t)], [document])


# -- what is kept


@transfer
async def what_is_kept_beside_jobs_is_counted_and_listed(t: Trial) -> None:
    """Intervals with their due times, documents of all namespaces, expired ones too; in order, page by page."""
    store = ends.movable(t)
    for name in ("b", "a", "ä"):
        await store.ensure([(ends.interval(t, name), t.make.id())], now=t.now)
    places = [("n", "a"), ("n", "b"), ("n2", "é"), ("n:1", ""), ("ñ", "x")]
    for namespace, key in reversed(places):
        await store.put_document(namespace, key, key, now=t.now)
    await store.put_document("n", "b", 2, expires_in=1.0, now=t.now)
    t.advance(10.0)
    expect.equal(await store.kept(), Counts(intervals=3, schedules=0, documents=5), "kept counts, expired documents too")
    intervals = await store.kept_intervals()
    wanted = [KeptInterval(ends.interval(t, name), t.at(-10)) for name in ("a", "b", "ä")]
    expect.equal(intervals, wanted, "intervals come by name, with when their copies are due")
    expect.equal(await store.kept_intervals(after="every:a", limit=1), wanted[1:2], "`after` and `limit` page them")
    documents = await store.kept_documents()
    expect.equal([(one.namespace, one.document.key) for one in documents], places, "documents come by namespace and key")
    expect.equal(documents[1].document, Document("b", 2, 2, t.at(-9)), "with revision and expiry")
    page = await store.kept_documents(after=("n", "a"), limit=2)
    expect.equal(page, documents[1:3], "`after` and `limit` page them")


@transfer
async def what_is_in_the_way_of_a_job_is_told(t: Trial) -> None:
    """Its id, or its key where that holds: of a done or dead job an idempotency key only (E6, E7)."""
    store = ends.movable(t)
    keyed = await t.make.done("a", idempotency_key="k")
    waiting = await t.make.pending("b", dedupe_key="k")
    await t.make.dead("c", dedupe_key="k")
    asked = [
        ends.job(901, "a", State.DONE, t.now, key=Key("idempotency", "k")),
        ends.job(902, "b", State.PENDING, t.now, key=Key("dedupe", "k")),
        ends.job(903, "b", State.DEAD, t.now, key=Key("dedupe", "k")),
        ends.job(904, "c", State.PENDING, t.now, key=Key("dedupe", "k")),
        ends.job(905, "b", State.PENDING, t.now, key=Key("idempotency", "k")),
        ends.job(906, "other", State.PENDING, t.now, key=Key("dedupe", "k")),
        replace(ends.job(907, "free", State.PENDING, t.now), id=waiting.id),
    ]
    found = await store.taken(asked)
    expect.equal(
        found,
        {uuid7(1_000_901): keyed.id, uuid7(1_000_902): waiting.id, waiting.id: waiting.id},
        "taken answers the holders of ids, and of keys that hold",
    )
    expect.equal(await store.taken([]), {}, "nothing is in the way of nothing")


# -- putting in, and taking out


@transfer
async def what_is_restored_is_as_it_was(t: Trial) -> None:
    """Jobs in every state at rest, intervals, schedules and documents: every field, moments to the microsecond."""
    store = await ends.marked(t, ends.FILLING)
    jobs = ends.jobs(t)
    cargo = Cargo(
        jobs,
        [KeptInterval(ends.interval(t), t.at(7)), KeptInterval(ends.interval(t, "never"), None)],
        [ends.schedule(t), replace(ends.schedule(t, "ended"), next_at=None, last_at=None, paused=False)],
        [KeptDocument("ns", Document("k", {"b": [1, None]}, 17, t.at(9.5))), KeptDocument("", Document("", "ü", 1))],
    )
    await store.restore(cargo, expect=ends.FILLING, now=t.now)
    found = {job.id: job for job in await t.everything()}
    expect.equal(len(found), len(jobs), "each job is stored once")
    for job in jobs:
        expect.same_job(found[job.id], job, "a job is restored as it was")
    stats = await store.stats(now=t.now)
    expect.equal((stats.pending, stats.dead, stats.done), (4, 1, 1), "restored jobs are counted")
    expect.same_tally(await store.tally(), jobs, "restored jobs are counted by queue, name and state")
    kept = sorted(cargo.intervals, key=lambda one: one.interval.schedule)
    expect.equal(await store.kept_intervals(), kept, "intervals are restored with their due times")
    schedules = sorted(cargo.schedules, key=lambda one: one.name)
    expect.equal(
        [replace(one, job=replace(one.job, id="")) for one in await store.list_schedules()],
        [replace(one, job=replace(one.job, id="")) for one in schedules],
        "schedules are restored with their revisions",
    )
    documents = sorted(cargo.documents, key=lambda one: one.namespace)
    expect.equal(await store.kept_documents(), documents, "documents are restored with revision and expiry")


@transfer
async def what_was_restored_goes_on(t: Trial) -> None:
    """Once it is open: keys hold, due jobs are claimed in order, dead ones redriven, old ones found, schedules due."""
    store = await ends.marked(t, ends.FILLING)
    jobs = {job.name: job for job in ends.jobs(t)}
    cargo = Cargo(
        list(jobs.values()),
        [KeptInterval(ends.interval(t), t.at(-1))],
        [replace(ends.schedule(t), paused=False)],
        [KeptDocument("ns", Document("k", 1, 17, t.at(9.5)))],
    )
    await store.restore(cargo, expect=ends.FILLING, now=t.now)
    await ends.marked(t, replace(ends.FILLING, stage=Stage.OVER))
    for name in ("later", "failing", "tick", "done"):
        key = jobs[name].key
        [answer] = await t.enqueue(t.new(name, key=key, schedule=jobs[name].schedule))
        expect.equal((answer.created, answer.id), (False, jobs[name].id), f"the key of {name} holds at once")
    [answer] = await t.enqueue(replace(t.new("dead", key=jobs["dead"].key), queue="functions", delay=900.0))
    expect.equal(answer.created, True, "the dedupe key of a dead job is free")
    expect.equal(await store.ensure([(ends.interval(t), t.make.id())], now=t.now), [None], "the interval has its copy")
    names = dict.fromkeys(jobs, 5)
    taken = [job.name for job in (await t.claim(Demand(10, ("default", "mail"), names))).jobs]
    expect.equal(taken, ["tick", "fresh"], "due jobs are claimed, best first")
    claimed = await t.claim(Demand(10, ("default", "mail"), names))
    expect.equal(claimed.next_in, 5.0, "and it is known when the next one is due")
    [old] = await store.find(JobFilter(states=frozenset({State.DEAD, State.DONE}), older_than=60.0), limit=9, now=t.now)
    expect.equal(old.name, "dead", "age counts from when the job finished there")
    expect.equal((await store.due_schedules(5, now=t.at(60))).schedules[0].name, "nightly", "schedules are due when they were")
    put = await store.put_document("ns", "k", 2, expect=17, now=t.now)
    expect.that(put is not None and put.revision == 18, "a document goes on from its revision", put)
    await store.delete(JobFilter(ids=(answer.id,)), now=t.now)
    redriven = await store.redrive(JobFilter(names=frozenset({"dead"})), RedrivePolicy.KEEP, now=t.now)
    expect.equal(list(redriven.revived), [jobs["dead"].id], "a dead job is sent round again")
    expect.equal(await store.delete(JobFilter(names=frozenset({"done"})), now=t.now), 1, "a done job is deleted")
    [again] = await t.enqueue(t.new("done", key=jobs["done"].key))
    expect.equal(again.created, True, "and its key is free then")


@transfer
async def restoring_again_changes_nothing(t: Trial) -> None:
    """What is there by id or name stays as it is, whatever comes."""
    store = await ends.marked(t, ends.FILLING)
    jobs = ends.jobs(t)
    cargo = Cargo(
        jobs, [KeptInterval(ends.interval(t), t.at(7))], [ends.schedule(t)], [KeptDocument("ns", Document("k", 1, 17))]
    )
    await store.restore(cargo, expect=ends.FILLING, now=t.now)
    before = await t.everything()
    other = Cargo(
        [replace(job, payload_json="0", failures=(), last_error=None) for job in jobs],
        [KeptInterval(Interval.of(99.0, ends.interval(t).job), None)],
        [replace(ends.schedule(t), revision=1, expression="* * * * *")],
        [KeptDocument("ns", Document("k", 2, 1))],
    )
    for again in (cargo, other):
        await store.restore(again, expect=ends.FILLING, now=t.now)
        await t.unchanged(before, "a job that is there stays as it is")
    expect.equal(await store.kept_intervals(), cargo.intervals, "an interval that is there stays as it is")
    expect.equal([one.revision for one in await store.list_schedules()], [41], "a schedule that is there stays as it is")
    expect.equal(await store.kept_documents(), cargo.documents, "a document that is there stays as it is")


@transfer
async def a_held_key_is_no_silent_loss(t: Trial) -> None:
    """A job whose key another holds is a `Conflict`, and is not stored."""
    store = ends.movable(t)
    await t.make.pending("job", dedupe_key="k")
    await t.make.done("done", idempotency_key="k")
    await ends.marked(t, ends.FILLING)
    before = await t.everything()
    for job in (
        ends.job(901, "job", State.PENDING, t.now, key=Key("dedupe", "k")),
        ends.job(902, "done", State.DONE, t.now, key=Key("idempotency", "k")),
    ):
        try:
            await store.restore(Cargo([job]), expect=ends.FILLING, now=t.now)
        except Conflict:
            pass
        else:
            expect.that(False, "a job whose key is held is refused, not left out")
    await t.unchanged(before, "a refused job is not stored")
    await store.restore(
        Cargo([ends.job(903, "job", State.DEAD, t.now, key=Key("dedupe", "k"))]), expect=ends.FILLING, now=t.now
    )
    expect.equal(
        (await t.job(uuid7(1_000_903))).state, State.DEAD, "a dead job's dedupe key holds nothing, so it is no conflict"
    )


@transfer
async def only_the_move_itself_puts_in_and_takes_out(t: Trial) -> None:
    """Under any other mark than the one expected, restore and remove are a `Conflict` and change nothing."""
    store = await ends.marked(t, ends.FILLING)
    job = ends.job(1, "job", State.PENDING, t.now)
    await store.restore(Cargo([job]), expect=ends.FILLING, now=t.now)
    other = Cargo([ends.job(2, "job", State.PENDING, t.now)], documents=[KeptDocument("ns", Document("k", 1, 1))])
    for mark in (
        replace(ends.FILLING, move="move-2"),
        replace(ends.FILLING, base=None),
        replace(ends.FILLING, stage=Stage.OVER),
    ):
        for name, call in (
            ("restore", partial(store.restore, other, now=t.now)),
            ("remove", partial(store.remove, Cargo([job]))),
        ):
            try:
                await call(expect=mark)
            except Conflict:
                pass
            else:
                expect.that(False, f"{name} under another mark is refused")
    expect.same_ids(await t.everything(), [job], "what was refused changed nothing")
    expect.equal((await store.kept()).documents, 0, "and put nothing in")


@transfer
async def what_is_removed_is_gone_with_its_keys(t: Trial) -> None:
    """Jobs with their failures and keys, intervals, schedules, documents; nothing else, and what is not there is no error."""
    store = await ends.marked(t, ends.FILLING)
    jobs = ends.jobs(t)
    cargo = Cargo(
        jobs, [KeptInterval(ends.interval(t), t.at(7))], [ends.schedule(t)], [KeptDocument("ns", Document("k", 1, 17))]
    )
    stays = ends.job(99, "stays", State.PENDING, t.now)
    others: Sequence[KeptDocument] = [KeptDocument("ns", Document("stays", 1, 1))]
    await store.restore(cargo, expect=ends.FILLING, now=t.now)
    await store.restore(Cargo([stays], documents=others), expect=ends.FILLING, now=t.now)
    for _ in range(2):
        await store.remove(cargo, expect=ends.FILLING)
        expect.same_ids(await t.everything(), [stays], "the jobs that were named are gone")
        expect.same_tally(await store.tally(), [stays], "and are counted no more")
        expect.equal(await store.kept(), Counts(documents=1), "so is what was named beside them")
    await store.restore(cargo, expect=ends.FILLING, now=t.now)
    found = {job.id: job for job in await t.everything()}
    for job in jobs:
        expect.same_job(found[job.id], job, "and can be put in again")
