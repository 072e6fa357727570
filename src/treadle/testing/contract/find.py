"""Looking: get, find and count, by the one predicate of `JobFilter` (L5)."""

from __future__ import annotations

from itertools import product

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Job, State
from treadle.core.outcome import Dead, Done, RetryAfter
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

find = Group[Trial]("find")


async def _population(t: Trial) -> list[Job]:
    """48 jobs over states, names, queues, keys and ages."""
    for number in range(48):
        key = {"idempotency_key": f"k{number}"} if number % 3 == 0 else {"dedupe_key": f"k{number}"} if number % 3 == 1 else {}
        job = await t.make.pending(f"n{number % 2}", queue=("default", "plugin:mail", "functions")[(number // 2) % 3], **key)  # type: ignore[arg-type]  # computed keywords
        if (number // 6) % 4:
            held = await t.hold(job.id)
            match (number // 6) % 4:
                case 1:
                    await t.end(held, Done())
                case 2:
                    await t.end(held, Dead("E: no"))
                case _ if number % 2:
                    await t.end(held, RetryAfter(60.0, "E: no"))
        else:
            await t.store.run_now(JobFilter(ids=[job.id]), now=t.at(3600))  # so that `hold` finds its own job
        t.advance(1)
    return await t.everything()


@find
async def get_answers_in_the_order_of_the_ids(t: Trial) -> None:
    """The jobs come in the order asked for, and unknown ids are left out."""
    a, b, c = await t.make.pending("a"), await t.make.done("b"), await t.make.dead("c")
    found = await t.store.get([c.id, t.make.id(), a.id, b.id])
    expect.same_ids(found, [c, a, b], "get answers the jobs in the order of the ids, without the unknown")
    expect.equal(await t.store.get([]), [], "get of no id answers nothing")
    for job in (a, b, c):
        expect.same_job(await t.job(job.id), job, "get answers the job as it is stored")


@find
async def every_combination_of_a_filter_means_the_same_everywhere(t: Trial) -> None:
    """Find and count agree with `JobFilter.matches`, whatever is combined (L5)."""
    jobs = await _population(t)
    some = [job.id for job in jobs[::5]]
    for states, names, queues, keyed, ids, older, of_faces in product(
        (None, {State.PENDING}, {State.DONE, State.DEAD}, {State.RUNNING}, set[State]()),
        (None, {"n1", "nobody"}),
        (None, {"default", "functions"}, {"plugin:mail"}),
        (None, True, False),
        (None, some),
        (None, 20.0),
        (None, True, False),
    ):
        which = JobFilter(
            ids=ids,
            states=None if states is None else frozenset(states),
            names=None if names is None else frozenset(names),
            queues=None if queues is None else frozenset(queues),
            older_than=older,
            keyed=keyed,
            of_faces=of_faces,
        )
        expected = [job for job in jobs if which.matches(job, t.now)]
        expect.same_ids(await t.store.find(which, limit=1000, now=t.now), expected, f"find answers what matches {which}")
        expect.equal(await t.store.count(which, now=t.now), len(expected), f"count counts what matches {which}")


@find
async def nothing_asked_for_is_nothing_found(t: Trial) -> None:
    """An empty set of ids, states, names or queues matches no job; only None restricts nothing."""
    await t.make.done()
    await t.make.pending("b")
    for which in (
        JobFilter(ids=[]),
        JobFilter(states=frozenset()),
        JobFilter(names=frozenset()),
        JobFilter(queues=frozenset()),
    ):
        expect.same_ids(await t.store.find(which, limit=10, now=t.now), [], f"{which} finds nothing")
        expect.equal(await t.store.count(which, now=t.now), 0, f"{which} counts nothing")
        expect.equal(await t.store.delete(which, now=t.now), 0, f"{which} deletes nothing")
        expect.equal(await t.store.run_now(which, now=t.now), 0, f"{which} hurries nothing")
    expect.equal(len(await t.everything()), 2, "a filter without restrictions finds everything")


@find
async def find_answers_the_newest_first(t: Trial) -> None:
    """Jobs come by id, newest first, whatever their state, and in whatever order they were enqueued (L4)."""
    new = [t.new(f"n{number}") for number in range(8)]
    await t.enqueue(*(new[index] for index in (5, 2, 7, 0, 3, 6, 1, 4)))
    await t.end(await t.hold(new[3].id), Done())
    await t.hold(new[6].id)
    found = await t.store.find(EVERYTHING, limit=100, now=t.now)
    expect.equal([job.id for job in found], [job.id for job in reversed(new)], "find answers the newest id first")


@find
async def pages_follow_on_each_other(t: Trial) -> None:
    """With `before` the next page begins after that id, and pages together are the whole (L4)."""
    jobs = [await t.make.pending(f"n{number % 2}") for number in range(11)]
    which = JobFilter(names=frozenset({"n0"}))
    expected = [job for job in reversed(jobs) if job.name == "n0"]
    pages: list[Job] = []
    before = None
    for size in (2, 2, 2, 0):
        page = await t.store.find(which, limit=2, before=before, now=t.now)
        expect.equal(len(page), size, "a page has as many jobs as there are, up to its limit")
        pages += page
        before = page[-1].id if page else before
    expect.same_ids(pages, expected, "the pages together are what matches, newest first")
    rest = await t.store.find(which, limit=100, before=jobs[3].id, now=t.now)
    expect.same_ids(rest, [jobs[2], jobs[0]], "`before` may be the id of any job, one that does not match too")
    ids = JobFilter(ids=[jobs[1].id, jobs[5].id, jobs[9].id])
    rest = await t.store.find(ids, limit=100, before=jobs[9].id, now=t.now)
    expect.same_ids(rest, [jobs[5], jobs[1]], "`before` holds together with a filter of ids")


@find
async def age_is_inclusive_to_the_microsecond(t: Trial) -> None:
    """older_than reaches exactly that age: from finished_at for finished jobs, from created_at for the others (L5)."""
    waiting = await t.make.pending("waiting", delay=9999.0)
    started = await t.make.running("running")
    t.advance(100)
    ended = await t.make.done("done")
    t.advance(10)
    for age, expected in ((10.0, [ended, started.job, waiting]), (10.000001, [started.job, waiting]), (110.000001, [])):
        which = JobFilter(older_than=age)
        expect.same_ids(
            await t.store.find(which, limit=10, now=t.now), expected, f"older_than={age} finds what is that old or older"
        )
        expect.equal(await t.store.count(which, now=t.now), len(expected), f"older_than={age} counts what find finds")


@find
async def looking_changes_nothing(t: Trial) -> None:
    """get, find, count, stats, tally, pending_names and due leave every job as it is, expired ones too."""
    await t.make.expired()
    await t.make.pending("a")
    before = await t.everything()
    await t.store.count(EVERYTHING, now=t.now)
    await t.store.stats(now=t.now)
    await t.store.tally()
    await t.store.pending_names()
    await t.store.due(["default"], now=t.now)
    await t.store.expired(10, now=t.now)
    await t.unchanged(before, "looking changes nothing")


@find
async def many_ids_may_be_asked_for(t: Trial) -> None:
    """Get and a filter take thousands of ids at once."""
    jobs = [t.new() for _ in range(3000)]
    await t.enqueue(*jobs)
    ids = [job.id for job in jobs]
    expect.equal([job.id for job in await t.store.get(ids)], ids, "get answers 3,000 ids in their order")
    expect.equal(await t.store.count(JobFilter(ids=ids), now=t.now), 3000, "a filter of 3,000 ids counts them all")


@find
async def names_with_marks_of_a_query_language_are_plain_text(t: Trial) -> None:
    """Names, queues and keys may hold quotes, percent signs, braces, emoji and line ends, and mean only themselves (E1)."""
    texts = [
        "a'b",
        'a"b',
        "a%b",
        "a_b",
        "a;b--",
        "{a}",
        "a\\b",
        "a:b",
        "*",
        "?",
        "[a]",
        "é\U0001f600",
        "a\nb",
        "$1",
        "%s",
        "a b",
    ]
    jobs = [await t.make.pending(text, queue=text, idempotency_key=text) for text in texts]
    for text, job in zip(texts, jobs, strict=True):
        found = await t.store.find(JobFilter(names=frozenset({text}), queues=frozenset({text})), limit=10, now=t.now)
        expect.same_ids(found, [job], f"the name and queue {text!r} find their own job only")
    expect.equal(await t.store.pending_names(texts), sorted(texts), "pending_names answers each name as it is")
    for text, job in zip(texts, jobs, strict=True):
        expect.same_ids(await t.claimable(queues=(text,)), [job], f"a claim of the queue {text!r} takes its own job only")
