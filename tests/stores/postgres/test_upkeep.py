"""Deleting and redriving beside others who touch the same jobs, and pruning by name behind old jobs of others (S8, E29)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Iterator
from typing import Any

import psycopg
import pytest

from treadle.core.filter import JobFilter
from treadle.core.job import Key, NewJob, State
from treadle.core.policies.redrive import RedrivePolicy
from treadle.stores.postgres import PostgresStore
from treadle.testing.factory import uuid7

PAUSE = threading.Event()  # for looking again soon at what happens elsewhere
DEAD = JobFilter(states=frozenset({State.DEAD}))
PENDING = JobFilter(states=frozenset({State.PENDING}))


class Other:
    """Another client of the same tables, with a transaction of its own."""

    def __init__(self, url: str) -> None:
        self.url, _, self.schema = url.partition("?schema=")
        self.connection = psycopg.connect(self.url)

    def do(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql.replace("treadle.", f"{self.schema}.").encode())
        return cursor.fetchall() if cursor.description else []

    async def commit_when_waited_for(self, call: Awaitable[Any]) -> Any:
        """The answer of the call, which has seen the state before this transaction, and goes on when it is committed."""
        task = asyncio.ensure_future(call)
        waiting = f"select from pg_locks where not granted and {self.connection.info.backend_pid} = any(pg_blocking_pids(pid))"
        async with asyncio.timeout(20):
            with psycopg.connect(self.url, autocommit=True) as watch:
                while watch.execute(waiting.encode()).fetchone() is None:
                    assert not task.done(), "the call waits for the other transaction"
                    await asyncio.to_thread(PAUSE.wait, 0.005)
        self.connection.commit()
        return await task

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def other(url: str) -> Iterator[Other]:
    """The other client, gone before the tables are emptied for the next test."""
    made = Other(url)
    yield made
    made.close()


async def _enqueue(store: PostgresStore, number: int) -> None:
    await store.enqueue([NewJob(uuid7(one), "job") for one in range(number)])


def test_a_delete_goes_on_where_others_deleted_some_of_the_same_jobs(url: str, other: Other) -> None:
    async def main() -> None:
        store = PostgresStore(url, listen=False)
        await _enqueue(store, 2500)
        other.do("delete from treadle.jobs where id in (select id from treadle.jobs order by id limit 10)")
        assert await other.commit_when_waited_for(store.delete(PENDING)) == 2490
        assert await store.count(PENDING) == 0
        await store.close()

    asyncio.run(main())


def test_a_delete_of_a_batch_is_full_where_others_deleted_some_of_the_same_jobs(url: str, other: Other) -> None:
    async def main() -> None:
        store = PostgresStore(url, listen=False)
        await _enqueue(store, 30)
        other.do("delete from treadle.jobs where id in (select id from treadle.jobs order by id limit 10)")
        assert await other.commit_when_waited_for(store.delete(PENDING, limit=15)) == 15
        assert await store.count(PENDING) == 5
        await store.close()

    asyncio.run(main())


def test_a_redrive_goes_on_where_others_deleted_some_of_the_same_jobs(url: str, other: Other) -> None:
    async def main() -> None:
        store = PostgresStore(url, listen=False)
        await _enqueue(store, 2500)
        other.do("update treadle.jobs set state = 'dead', finished_at = now()")
        other.connection.commit()
        other.do("delete from treadle.jobs where id in (select id from treadle.jobs order by id limit 10)")
        redriven = await other.commit_when_waited_for(store.redrive(DEAD, RedrivePolicy.RESET))
        assert len(redriven.revived) == 2490
        assert await store.count(DEAD) == 0
        await store.close()

    asyncio.run(main())


def test_a_failure_that_is_recorded_while_a_delete_waits_goes_with_its_job(url: str, other: Other) -> None:
    async def main() -> None:
        store = PostgresStore(url, listen=False)
        await _enqueue(store, 1)
        other.do("update treadle.jobs set attempts = 1, started_at = now()")  # an attempt, and its end
        other.do(
            "insert into treadle.failures (job_id, attempt, worker, started_at, ended_at, error) "
            "select id, 1, 'w', now(), now(), 'E: no' from treadle.jobs"
        )
        assert await other.commit_when_waited_for(store.delete(PENDING)) == 1
        assert other.do("select count(*) from treadle.failures") == [(0,)]
        await store.close()

    asyncio.run(main())


def test_the_records_of_a_dropped_dead_letter_go_with_it(url: str, other: Other) -> None:
    async def main() -> None:
        store = PostgresStore(url, listen=False)
        key = Key("dedupe", "k")
        await store.enqueue([NewJob(uuid7(1), "job", key=key)])
        other.do("update treadle.jobs set state = 'dead', attempts = 1, started_at = now(), finished_at = now()")
        other.do(
            "insert into treadle.failures (job_id, attempt, worker, started_at, ended_at, error) "
            "select id, 1, 'w', now(), now(), 'E: no' from treadle.jobs"
        )
        other.connection.commit()
        await store.enqueue([NewJob(uuid7(2), "job", key=key)])
        assert (await store.redrive(DEAD, RedrivePolicy.RESET)).dropped == [uuid7(1)]
        assert other.do("select count(*) from treadle.failures") == [(0,)]
        await store.close()

    asyncio.run(main())


# Old jobs of others, and behind them those of one name: old ones, keyed ones, and young ones.
FILL = """
insert into treadle.jobs (id, queue, name, payload, state, priority, run_at, created_at, started_at, finished_at, attempts,
    key_kind, key)
select
    lpad(i::text, 9, '0'), 'default', case when i > 12000 then 'rare' else 'name-' || mod(i, 20) end, '{}', 'done', 0,
    now() - interval '2 days', now() - interval '2 days', now() - interval '2 days',
    now() - case when i > 13500 then interval '1 minute' else interval '1 day' - (i || ' ms')::interval end, 1,
    case when mod(i, 10) = 0 then 'idempotency' end, case when mod(i, 10) = 0 then i::text end
from generate_series(1, 14000) i
"""


def test_a_prune_by_name_finds_what_lies_behind_many_old_jobs_of_others(url: str, other: Other) -> None:
    async def main() -> None:
        store = PostgresStore(url, listen=False)
        other.do(FILL)
        other.connection.commit()
        done, rare = frozenset({State.DONE}), frozenset({"rare"})
        old = JobFilter(states=done, names=rare, older_than=3600.0)
        assert await store.delete(JobFilter(states=done, names=rare, older_than=3600.0, keyed=True), limit=100) == 100
        assert await store.delete(JobFilter(states=done, names=rare, older_than=3600.0, keyed=False)) == 1350
        assert await store.delete(old) == 50
        assert await store.count(JobFilter(names=rare)) == 500, "the young ones stay"
        assert await store.count(JobFilter(states=done)) == 12_500, "and those of others"
        assert await store.delete(JobFilter(states=done, older_than=3600.0)) == 12_000
        await store.close()

    asyncio.run(main())
