"""What the memory store keeps does not grow with work that is finished and gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Enqueued, Job, Key, NewJob, State
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.policies.limits import FAR_FUTURE
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.memory import MemoryStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def kept(store: MemoryStore) -> int:
    """How many entries there are in everything that the store keeps."""
    ledger, shelf = store._ledger, store._documents
    rolls = [ledger.pending, *ledger.finished.values(), *ledger.ages.values(), *ledger.by_name.values()]
    return (
        sum(map(len, rolls))
        + len(ledger.jobs)
        + len(ledger.tokens)
        + len(ledger.keys)
        + len(ledger.by_name)
        + ledger.lanes.kept()
        + sum(map(len, ledger.lanes._by_name.values()))
        + sum(map(len, ledger.lanes._by_queue.values()))
        + len(shelf._expiries)
        + sum(map(len, shelf._keys.values()))
        + sum(map(len, shelf._kept.values()))
    )


async def finished_and_deleted(store: MemoryStore, step: int) -> None:
    name, job_id = f"name-{step}", f"{step:06}"
    key = Key("idempotency" if step % 2 else "dedupe", job_id)
    await store.enqueue([NewJob(job_id, name, queue=f"q{step}", key=key)], now=NOW)
    await store.claim(job_id, [Demand(1)], worker="w", lease=60, now=NOW)
    await store.finish([Ending(Claim(job_id, job_id), Done() if step % 3 else Dead("e"))], now=NOW)
    await store.delete(EVERYTHING, now=NOW)


async def pending_and_deleted(store: MemoryStore, step: int) -> None:
    await store.enqueue([NewJob(f"{step:06}", "a", delay=step % 2 * 60.0, priority=step % 50)], now=NOW)
    await store.enqueue([NewJob("stays", "a", delay=1e6)], now=NOW)
    await store.delete(JobFilter(ids=[f"{step:06}"]), now=NOW)


async def run_now_over_and_over(store: MemoryStore, step: int) -> None:
    await store.enqueue([NewJob("stays", "a", delay=1e6)], now=NOW)
    await store.run_now(EVERYTHING, now=NOW + timedelta(seconds=step))


async def retried_over_and_over(store: MemoryStore, step: int) -> None:
    now = NOW + timedelta(seconds=step)
    await store.enqueue([NewJob("stays", "a")], now=now)
    await store.claim(str(step), [Demand(1)], worker="w", lease=60, now=now)
    await store.finish([Ending(Claim("stays", str(step)), Released(1.0))], now=now)


async def document_rewritten(store: MemoryStore, step: int) -> None:
    await store.put_document("n", "k", step, expires_in=1e6, now=NOW)


async def document_expired_unread(store: MemoryStore, step: int) -> None:
    await store.put_document(f"n{step}", "k", step, expires_in=1, now=NOW + timedelta(seconds=step))


@pytest.mark.parametrize(
    "step",
    [
        finished_and_deleted,
        pending_and_deleted,
        run_now_over_and_over,
        retried_over_and_over,
        document_rewritten,
        document_expired_unread,
    ],
)
def test_nothing_is_kept_of_what_is_gone(step: Callable[[MemoryStore, int], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        store = MemoryStore()
        for number in range(3_000):
            await step(store, number)
        assert kept(store) < 1_000

    asyncio.run(main())


def test_what_is_handed_out_is_a_plain_job_that_cannot_be_changed() -> None:
    async def main() -> None:
        store = MemoryStore()
        (answer,) = await store.enqueue([NewJob("1", "a")], now=NOW)
        (claimed,) = (await store.claim("t", [Demand(1)], worker="w", lease=60, now=NOW)).jobs
        await store.finish([Ending(Claim("1", "t"), RetryAfter(0, "e"))], now=NOW)
        (stored,) = await store.get(["1"])
        assert [job.state for job in (answer.job, claimed, stored)] == [State.PENDING, State.RUNNING, State.PENDING]
        assert type(answer) is Enqueued
        for job in (answer.job, claimed, stored):
            assert type(job) is Job
            assert hash(job) == hash(Job(**{name: getattr(job, name) for name in Job.__dataclass_fields__}))
            with pytest.raises(FrozenInstanceError):
                job.state = State.DONE  # type: ignore[misc]  # the point of the test

    asyncio.run(main())


def test_moments_beyond_the_calendar_are_its_last() -> None:
    async def main() -> None:
        store = MemoryStore()
        far = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
        first = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
        answers = await store.enqueue(
            [NewJob("1", "a", delay=3e11), NewJob("2", "a", run_at=far), NewJob("3", "a", run_at=first)], now=NOW
        )
        assert [answer.job.run_at for answer in answers] == [FAR_FUTURE, FAR_FUTURE, datetime.min.replace(tzinfo=UTC)]
        claimed = await store.claim("t", [Demand(9)], worker="w", lease=1e300, now=NOW)
        assert [(job.id, job.lease_until) for job in claimed.jobs] == [("3", FAR_FUTURE)]

    asyncio.run(main())


def test_a_stored_document_is_out_of_reach() -> None:
    async def main() -> None:
        store = MemoryStore()
        value: dict[str, Any] = {"list": [1]}
        written = await store.put_document("n", "k", value)
        value["list"].append(2)
        assert written is not None
        written.value["list"].append(3)  # type: ignore[index, call-overload, union-attr]  # what a careless caller does
        read = await store.get_document("n", "k")
        assert read is not None
        assert read.value == {"list": [1]}

    asyncio.run(main())


def test_jobs_outlive_a_close_and_migrating_says_that_there_is_nothing_to_do() -> None:
    async def main() -> None:
        store = MemoryStore()
        await store.enqueue([NewJob("1", "a")])
        await store.close()
        await store.close()
        assert len(await store.get(["1"])) == 1
        assert "no tables" in await store.migrate()

    asyncio.run(main())
