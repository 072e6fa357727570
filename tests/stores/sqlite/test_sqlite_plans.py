"""No operation but stats and tally reads all jobs: what SQLite says of each statement that the operations run (S8)."""

import asyncio
import re
import sqlite3
from contextlib import contextmanager
from dataclasses import replace

import pytest

from treadle.core.filter import JobFilter
from treadle.core.job import Key, NewJob, State
from treadle.core.outcome import Dead, Done, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval
from treadle.core.store import Claim, Demand, Ending, Reclaim
from treadle.stores.sqlite import SQLiteStore, session as sessions
from treadle.stores.sqlite.statements import statement
from treadle.testing import ManualClock

DONE, DEAD, PENDING, RUNNING = (frozenset({state}) for state in (State.DONE, State.DEAD, State.PENDING, State.RUNNING))
# What may be read from end to end: parameters, what a statement made itself, and the running jobs.
SMALL = re.compile(
    r"SCAN (\w+ VIRTUAL TABLE|\(subquery-\d+\)|\w*kinds\w*|k|q|n|s|h|i|o|w|heads|d|\d+ CONSTANT ROWS?"
    r"|CONSTANT ROW|(treadle_jobs|j) USING (COVERING )?INDEX treadle_jobs_running)"
)


@pytest.fixture()
def plans(monkeypatch):
    """Collects the plan of every statement that is run."""
    seen = {}
    fetched = sessions.fetched

    def executor(connection):
        def execute(sql, parameters):
            if sql not in seen:
                seen[sql] = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
            return fetched(connection.execute(sql, parameters))

        return execute

    monkeypatch.setattr("treadle.stores.sqlite.writer.executor", executor)
    monkeypatch.setattr("treadle.stores.sqlite.reader.executor", executor)
    return seen


def bad(plans):
    return [(step, sql) for sql, steps in plans.items() for step in steps if step.startswith("SCAN") and not SMALL.match(step)]


OPERATIONS = {
    "claim by names": lambda s, now: s.claim("t", [Demand(9, None, {"a": 5, "b": 5})], worker="w", lease=60, now=now),
    "claim any name": lambda s, now: s.claim("t", [Demand(9, ("functions",))], worker="w", lease=60, now=now),
    "held": lambda s, now: s.held(["t"]),
    "expired": lambda s, now: s.expired(9, now=now),
    "renew": lambda s, now: s.renew([Claim("1", "t")], 60, now=now),
    "finish": lambda s, now: s.finish(
        [Ending(Claim("1", "t"), Done("x")), Ending(Claim("2", "t"), RetryAfter(1, "E"))], now=now
    ),
    "find by state": lambda s, now: s.find(JobFilter(states=DONE), limit=9, now=now),
    "find by name": lambda s, now: s.find(JobFilter(names=frozenset({"a"}), states=PENDING), limit=9, before="5", now=now),
    "find by queue": lambda s, now: s.find(JobFilter(queues=frozenset({"q"})), limit=9, now=now),
    "find all": lambda s, now: s.find(JobFilter(), limit=9, now=now),
    "find of no face": lambda s, now: s.find(JobFilter(of_faces=False), limit=9, now=now),
    "find running": lambda s, now: s.find(JobFilter(states=RUNNING), limit=9, now=now),
    "find running by name": lambda s, now: s.find(JobFilter(states=RUNNING, names=frozenset({"a"})), limit=9, now=now),
    "find running or dead": lambda s, now: s.find(JobFilter(states=RUNNING | DEAD), limit=9, before="5", now=now),
    "find by ids": lambda s, now: s.find(JobFilter(ids=["1"], states=DONE), limit=9, now=now),
    "count by age": lambda s, now: s.count(JobFilter(states=DONE, older_than=5.0, keyed=False), now=now),
    "count": lambda s, now: s.count(JobFilter(states=DEAD), now=now),
    "count running": lambda s, now: s.count(JobFilter(states=RUNNING), now=now),
    "count all": lambda s, now: s.count(JobFilter(), now=now),
    "prune": lambda s, now: s.delete(JobFilter(states=DONE, older_than=5.0, keyed=False), limit=500, now=now),
    "prune a queue": lambda s, now: s.delete(JobFilter(states=DONE, queues=frozenset({"q"}), older_than=5.0), now=now),
    "delete": lambda s, now: s.delete(JobFilter(ids=["1", "2"]), now=now),
    "redrive": lambda s, now: s.redrive(JobFilter(), RedrivePolicy.RESET, now=now),
    "redrive a queue": lambda s, now: s.redrive(JobFilter(queues=frozenset({"q"})), RedrivePolicy.KEEP, limit=9, now=now),
    "run now": lambda s, now: s.run_now(JobFilter(names=frozenset({"a"})), now=now),
    "names": lambda s, now: s.pending_names(),
    "due": lambda s, now: s.due(["default", "q"], now=now),
    "get": lambda s, now: s.get(["1", "2"]),
    "ensure": lambda s, now: s.ensure([(Interval.of(5.0, NewJob("", "tick")), "99")], now=now),
    "intervals": lambda s, now: s.intervals(["every:tick"]),
    "due schedules": lambda s, now: s.due_schedules(9, now=now),
    "list schedules": lambda s, now: s.list_schedules(prefix="n", after="na"),
    "put document": lambda s, now: s.put_document("n", "k", 1, expires_in=5.0, now=now),
    "list documents": lambda s, now: s.list_documents("n", prefix="k", after="ka", now=now),
    "enqueue": lambda s, now: s.enqueue([NewJob("1", "a"), NewJob("999", "k", key=Key("dedupe", "k"))], now=now),
}


@pytest.mark.parametrize("what", OPERATIONS)
def test_no_operation_reads_all_jobs(what, plans):
    async def main():
        clock = ManualClock()
        store = SQLiteStore(":memory:")
        await populated(store, clock)
        plans.clear()
        await OPERATIONS[what](store, clock.now())
        await store.close()

    asyncio.run(main())
    assert plans
    assert not bad(plans)


def test_reclaiming_reads_no_more_than_it_is_given(plans):
    async def main():
        clock = ManualClock()
        store = SQLiteStore(":memory:")
        await populated(store, clock)
        now = clock.advance(3600)
        expired = await store.expired(9, now=now)
        assert await store.reclaim([Reclaim(one, Dead("E")) for one in expired], now=now)
        await store.close()

    asyncio.run(main())
    assert not bad(plans)


def test_stats_count_in_one_index(plans):
    """One index is read from end to end, and the running jobs through theirs (L6, S8)."""

    async def main():
        clock = ManualClock()
        store = SQLiteStore(":memory:")
        await populated(store, clock)
        plans.clear()
        assert (await store.stats()).running == 6
        await store.close()

    asyncio.run(main())
    [steps] = plans.values()
    [scan] = [step for step in steps if step.startswith("SCAN") and not SMALL.match(step) and "groups" not in step]
    assert scan == "SCAN treadle_jobs USING COVERING INDEX treadle_jobs_at_rest"


def test_a_tally_counts_in_one_index_and_leaps_to_the_oldest(plans):
    """No payload, no row but those that run and the heads of kinds that wait, and no other index from end to end (F15)."""
    columns = set()

    def read(action, table, column, *_):
        if action == sqlite3.SQLITE_READ and table == "treadle_jobs":
            columns.add(column)
        return sqlite3.SQLITE_OK

    async def main():
        clock = ManualClock()
        store = SQLiteStore(":memory:")
        await populated(store, clock)
        plans.clear()
        await store.tally()
        connection = store._connection._running[0].writer._connection
        connection.set_authorizer(read)
        connection.execute(f"EXPLAIN {statement('tally')}").close()
        connection.set_authorizer(None)
        await store.close()

    asyncio.run(main())
    [steps] = plans.values()
    reads = [step for step in steps if "treadle_jobs" in step]
    scans = [step for step in reads if not step.startswith("SEARCH")]
    at_rest, running = scans
    assert at_rest == "SCAN treadle_jobs USING COVERING INDEX treadle_jobs_at_rest"
    assert running == "SCAN treadle_jobs USING INDEX treadle_jobs_running"
    ready = [step for step in reads if "treadle_jobs_ready" in step]
    assert len(ready) == 3
    assert all("COVERING INDEX treadle_jobs_ready (queue=? AND name=?" in step for step in ready)
    [waiting] = set(reads) - {*scans, *ready}
    assert waiting.endswith("INDEX treadle_jobs_waiting (queue=? AND name=?)")
    assert columns == {"queue", "name", "state", "priority", "run_at"}


async def populated(store, clock):
    """A few jobs in every state, so that no statement is skipped."""
    jobs = [NewJob(str(number), "ab"[number % 2], queue=("default", "q", "functions")[number % 3]) for number in range(60)]
    jobs[7] = replace(jobs[7], key=Key("dedupe", "k"))
    await store.enqueue([*jobs, NewJob("60", "a", delay=0.5), NewJob("61", "a", delay=500.0)], now=clock.now())
    claimed = await store.claim("t", [Demand(30, ("default", "q"))], worker="w", lease=60, now=clock.now())
    outcomes = [Done(), Dead("E: no")] * 12
    await store.finish(
        [Ending(Claim(job.id, "t"), outcome) for job, outcome in zip(claimed.jobs, outcomes, strict=False)], now=clock.now()
    )
    clock.advance(10)


def test_claims_stay_fast_behind_jobs_that_nobody_here_runs(tmp_path):
    """A claim costs the same behind 20,000 unknown due jobs and 20,000 future ones."""

    async def steps(unknown):
        clock = ManualClock()
        store = SQLiteStore(tmp_path / f"{unknown}.db")
        piles = [NewJob(f"u{number:06}", f"unknown-{number % 7}", priority=9) for number in range(unknown)]
        piles += [NewJob(f"f{number:06}", "known", priority=9, delay=3600.0) for number in range(unknown)]
        for start in range(0, len(piles), 5000):
            await store.enqueue(piles[start : start + 5000], now=clock.now())
        await store.enqueue([NewJob(f"k{number}", "known") for number in range(5)], now=clock.now())
        with counted(store._connection._running[0].writer._connection) as count:
            claimed = await store.claim("t", [Demand(2, None, {"known": 5})], worker="w", lease=60, now=clock.now())
        assert [job.id for job in claimed.jobs] == ["k0", "k1"]
        await store.close()
        return count()

    async def main():
        few, many = await steps(50), await steps(20_000)
        assert many <= few * 1.2

    asyncio.run(main())


LISTS = {
    "all": (JobFilter(), ["r3", "r2", "r1", "r0", "p0"]),
    "running": (JobFilter(states=RUNNING), ["r3", "r2", "r1", "r0"]),
    "running of a name": (JobFilter(states=RUNNING, names=frozenset({"r"})), ["r3", "r2", "r1", "r0"]),
    "running or pending": (JobFilter(states=RUNNING | PENDING), ["r3", "r2", "r1", "r0", "p0"]),
    "pending": (JobFilter(states=PENDING), ["p0"]),
    "dead": (JobFilter(states=DEAD), ["d0"]),
}


def test_lists_stay_fast_behind_done_jobs(tmp_path):
    """Lists, and counts of what is few, cost the same behind 20,000 done jobs, in whatever state the jobs are (S8)."""

    async def steps(done):
        store = SQLiteStore(tmp_path / f"{done}.db")
        await store.enqueue([NewJob("d0", "d"), NewJob("p0", "p"), *(NewJob(f"r{number}", "r") for number in range(4))])
        await store.claim("t", [Demand(1, None, {"d": 5}), Demand(4, None, {"r": 5})], worker="w", lease=60)
        await store.finish([Ending(Claim("d0", "t"), Dead("E"))])
        for start in range(0, done, 5000):
            numbers = range(start, min(done, start + 5000))
            await store.enqueue([NewJob(f"a{number:06}", f"a{number % 3}") for number in numbers])
            claimed = await store.claim("u", [Demand(5000, None, {"a0": 5, "a1": 5, "a2": 5})], worker="w", lease=60)
            await store.finish([Ending(Claim(job.id, "u"), Done()) for job in claimed.jobs])
        assert (await store.stats()).done == done
        counts = {}
        for what, (which, ids) in LISTS.items():
            with counted(store._connection._running[0].reader._connection) as count:
                assert [job.id for job in await store.find(which, limit=5)] == ids
                assert which.states is None or await store.count(which) == len(ids)
            counts[what] = count()
        await store.close()
        return counts

    async def main():
        few, many = await steps(50), await steps(20_000)
        assert not {what: (few[what], steps) for what, steps in many.items() if steps > few[what] * 1.2}

    asyncio.run(main())


@contextmanager
def counted(connection):
    """Steps of SQLite's machine, in tens, and not time."""
    count = 0

    def tick():
        nonlocal count
        count += 1

    connection.set_progress_handler(tick, 10)
    yield lambda: count
    connection.set_progress_handler(None, 0)
