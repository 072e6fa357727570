"""Claims that go on from their floors: strict for what is enqueued here, and nothing is passed over for long (E28)."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from datetime import UTC, datetime, timedelta

import pytest

from treadle.core.job import Job, NewJob
from treadle.core.store import Demand
from treadle.stores.postgres import PostgresStore, floors
from treadle.testing.factory import uuid7

PAUSE = threading.Event()  # for looking again soon at what happens elsewhere


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Floors are used however cheap a look from the beginning is, and for a good while."""
    monkeypatch.setattr(floors, "WORTH", 0.0)
    monkeypatch.setattr(floors, "SHARE", 1e9)


def _order(jobs: list[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))


def test_what_is_enqueued_here_is_claimed_in_strict_order(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url)
        chance = random.Random(5)
        numbers, tokens = itertools.count(1), itertools.count(1)
        waiting: dict[str, Job] = {}

        async def enqueue(number: int) -> None:
            new = [
                NewJob(
                    uuid7(next(numbers)),
                    f"n{chance.randrange(3)}",
                    queue=f"q{chance.randrange(2)}",
                    priority=chance.choice((0, 0, 0, 5, -5)),
                    run_at=LONG_AGO + timedelta(seconds=chance.randrange(1000)) if chance.random() < 0.3 else None,
                )
                for _ in range(number)
            ]
            waiting.update((answer.id, answer.job) for answer in await store.enqueue(new))

        await enqueue(300)
        for _ in range(150):
            if chance.random() < 0.3:
                await enqueue(chance.randrange(1, 8))
            queues = chance.choice((None, ("q0",), ("q0", "q1")))
            names = chance.choice((None, {"n0": 5, "n1": 5}, {"n0": 5, "n1": 5, "n2": 5}))
            limit = chance.randrange(1, 9)
            claimed = await store.claim(f"t{next(tokens)}", [Demand(limit, queues, names)], worker="w", lease=60.0)
            meant = [
                job
                for job in waiting.values()
                if (queues is None or job.queue in queues) and (names is None or job.name in names)
            ]
            assert [job.id for job in claimed.jobs] == [job.id for job in _order(meant)[:limit]]
            for job in claimed.jobs:
                del waiting[job.id]
        await store.close()

    asyncio.run(main())


def test_what_another_process_enqueues_is_seen_at_the_next_look(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        here, there = PostgresStore(url), PostgresStore(url)
        numbers, tokens = itertools.count(1), itertools.count(1)
        await here.enqueue([NewJob(uuid7(next(numbers)), "job") for _ in range(100)])

        async def claim(limit: int) -> list[Job]:
            return list((await here.claim(f"t{next(tokens)}", [Demand(limit, None, {"job": 5})], worker="w", lease=60.0)).jobs)

        await claim(10)
        await there.enqueue(
            [NewJob(uuid7(next(numbers)), "job", priority=9), NewJob(uuid7(next(numbers)), "job", run_at=LONG_AGO)]
        )
        assert all(job.priority == 0 and job.run_at > LONG_AGO for job in await claim(10)), "the claim went on from its floor"
        monkeypatch.setattr(floors, "LONGEST", 0.0)  # the time is over
        jobs = await claim(2)
        assert [(job.priority, job.run_at == LONG_AGO) for job in jobs] == [(9, False), (0, True)]
        monkeypatch.setattr(floors, "LONGEST", 1e9)
        await claim(10)
        await there.enqueue([NewJob(uuid7(next(numbers)), "job", priority=9)])
        assert len(await claim(1000)) == 71, "a claim that would come back short looks from the beginning"
        await here.close()
        await there.close()

    asyncio.run(main())


def test_several_processes_take_each_job_once(url: str) -> None:
    async def main() -> None:
        stores = [PostgresStore(url) for _ in range(3)]
        numbers = itertools.count(1)
        taken: list[str] = []
        enqueued: list[str] = []

        async def enqueue(store: PostgresStore) -> None:
            for _ in range(40):
                jobs = [NewJob(uuid7(next(numbers)), f"n{number % 3}", priority=number % 2) for number in range(10)]
                await store.enqueue(jobs)
                enqueued.extend(job.id for job in jobs)

        async def work(store: PostgresStore, worker: str) -> None:
            for number in itertools.count():
                claimed = await store.claim(f"{worker}-{number}", [Demand(7)], worker=worker, lease=60.0)
                taken.extend(job.id for job in claimed.jobs)
                if len(taken) == 1200:
                    return
                if not claimed.jobs:
                    await asyncio.to_thread(PAUSE.wait, 0.001)

        async with asyncio.timeout(60):
            await asyncio.gather(*map(enqueue, stores), *(work(store, f"w{at}") for at, store in enumerate(stores * 2)))
        assert sorted(taken) == sorted(enqueued)
        for store in stores:
            await store.close()

    asyncio.run(main())
