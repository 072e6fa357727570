"""Counting: the aggregate of stats, the names that wait, the queues that are due (L6, E19)."""

from __future__ import annotations

from treadle.core.store import Stats
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

stats = Group[Trial]("stats")


@stats
async def an_empty_store_counts_nothing(t: Trial) -> None:
    """Zeros, no next time, no duplicates (L6)."""
    expect.equal(await t.store.stats(now=t.now), Stats(0, 0, 0, 0, None, {}, 0), "an empty store counts nothing")


@stats
async def each_state_is_counted(t: Trial) -> None:
    """Jobs are counted by state, over all queues, those of faces too (L6)."""
    for queue in ("default", "functions", "plugin:mail"):
        for number in range(4):
            await t.make.pending(f"p{number}", queue=queue)
        for number in range(3):
            await t.make.running(f"r{number}", queue=queue)
        for number in range(2):
            await t.make.done(f"d{number}", queue=queue)
        await t.make.dead("x", queue=queue)
    answer = await t.store.stats(now=t.now)
    counts = (answer.pending, answer.running, answer.done, answer.dead)
    expect.equal(counts, (12, 9, 6, 3), "stats count the jobs of each state: pending, running, done, dead")


@stats
async def next_run_at_is_the_earliest_of_pending_jobs(t: Trial) -> None:
    """The earliest run_at of all pending jobs, past or future; running and finished jobs play no part (L6)."""
    await t.make.done("a")
    await t.make.running("b")
    expect.equal((await t.store.stats(now=t.now)).next_run_at, None, "without pending jobs there is no next run")
    await t.make.pending("c", delay=60.0)
    await t.make.pending("d", delay=30.5, queue="functions")
    expect.equal((await t.store.stats(now=t.now)).next_run_at, t.at(30.5), "next_run_at is the earliest run_at")
    await t.make.pending("e", run_at=t.at(-5))
    expect.equal((await t.store.stats(now=t.now)).next_run_at, t.at(-5), "a job that is due already counts too")


@stats
async def duplicates_are_names_with_more_than_one_pending_copy(t: Trial) -> None:
    """Names with several pending jobs and how many, over all queues; other states do not count (L6)."""
    await t.make.done("twice")
    await t.make.running("once")
    for name, copies in (("twice", 2), ("once", 1), ("thrice", 3)):
        for number in range(copies):
            await t.make.pending(name, queue=f"q{number}", delay=60.0)
    answer = await t.store.stats(now=t.now)
    expect.equal(dict(answer.duplicates), {"twice": 2, "thrice": 3}, "duplicates have the names with several pending copies")
    expect.equal(answer.duplicate_names, 2, "duplicate_names says how many such names there are")


@stats
async def at_most_ten_duplicate_names_are_listed(t: Trial) -> None:
    """Ten names at most, those with the most copies, then by name; the number of all such names is exact (L6)."""
    jobs = [t.new(f"n{number:02}") for number in range(14) for _ in range(2 + number % 3)]
    await t.enqueue(*jobs)
    answer = await t.store.stats(now=t.now)
    expect.equal(answer.duplicate_names, 14, "duplicate_names counts every name with several pending copies")
    copies = {f"n{number:02}": 2 + number % 3 for number in range(14)}
    expected = dict(sorted(copies.items(), key=lambda item: (-item[1], item[0]))[:10])
    expect.equal(dict(answer.duplicates), expected, "the ten names with the most copies are listed, ties by name")


@stats
async def pending_names_are_sorted_and_each_comes_once(t: Trial) -> None:
    """The names of pending jobs, due or not, in code-point order (E19)."""
    for name in ("b", "a", "B", "é", "z", "\U0001f600", "a", "10", "9"):
        await t.make.pending(name, delay=60.0)
    await t.make.done("done")
    await t.make.running("running")
    await t.make.dead("dead")
    expected = sorted({"b", "a", "B", "é", "z", "\U0001f600", "10", "9"})
    expect.equal(await t.store.pending_names(), expected, "pending_names are the names of pending jobs, in code-point order")


@stats
async def pending_names_keep_to_their_queues(t: Trial) -> None:
    """Without queues those of faces are left out; with queues only those are looked at (E19)."""
    for name, queue in (("own", "default"), ("other", "q"), ("function", "functions"), ("plugin", "plugin:mail")):
        await t.make.pending(name, queue=queue)
    expect.equal(await t.store.pending_names(), ["other", "own"], "without queues the queues of faces are left out")
    expect.equal(await t.store.pending_names(["functions", "q", "empty"]), ["function", "other"], "only the queues named count")
    expect.equal(await t.store.pending_names([]), [], "no queue has no names")


@stats
async def due_answers_the_queues_with_claimable_jobs(t: Trial) -> None:
    """A queue is due if a pending job of it has come to its run_at (P8)."""
    await t.make.pending("a", queue="now")
    await t.make.pending("a", queue="later", delay=10.0)
    await t.make.running("a", queue="running")
    await t.make.done("a", queue="done")
    queues = ["now", "later", "running", "done", "empty"]
    expect.equal(await t.store.due(queues, now=t.now), {"now"}, "only a queue with a due pending job is due")
    t.advance(10)
    expect.equal(await t.store.due(queues, now=t.now), {"now", "later"}, "a queue is due once its job has come to its run_at")
    expect.equal(await t.store.due(["running"], now=t.now), set(), "queues that were not asked about are not answered")
    expect.equal(await t.store.due([], now=t.now), set(), "no queue, no answer")
    await t.claimable(queues=("now",))
    expect.equal(await t.store.due(queues, now=t.now), {"later"}, "a queue is no longer due once its jobs are claimed")
