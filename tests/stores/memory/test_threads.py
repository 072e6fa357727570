"""The memory store under threads that each run an event loop of their own."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from treadle.core.filter import EVERYTHING
from treadle.core.job import Key, NewJob
from treadle.core.outcome import Done, RetryAfter
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.memory import MemoryStore

THREADS = 8


@pytest.fixture
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], Coroutine[Any, Any, None]], number: int = THREADS) -> None:
    """Run `work(index)` in so many threads at once; what one of them raises is raised here."""
    errors: list[BaseException] = []
    together = threading.Barrier(number)

    def run(index: int) -> None:
        together.wait(10)
        try:
            asyncio.run(work(index))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.mark.usefixtures("_switching_often")
def test_every_job_is_claimed_once_and_every_key_created_once() -> None:
    store = MemoryStore()
    total, created, runs = 4_000, Counter[str](), Counter[str]()
    lock = threading.Lock()

    async def work(index: int) -> None:
        mine, ran = [], []
        for start in range(0, total, 20):
            numbers = range(start, start + 20)
            answers = await store.enqueue(
                [NewJob(f"{number}-{index}", f"n{number % 3}", key=Key("idempotency", f"k{number}")) for number in numbers]
            )
            mine += [f"k{number}" for number, answer in zip(numbers, answers, strict=True) if answer.created]
            ran += await some(index, start, retry=start % 100 == 0)
        while (await store.stats()).pending:
            ran += await some(index, total, retry=False)
        with lock:
            created.update(mine)
            runs.update(ran)

    async def some(index: int, start: int, *, retry: bool) -> list[str]:
        token = f"{index}/{start}/{len(runs)}"
        claimed = await store.claim(token, [Demand(7)], worker=f"w{index}", lease=60)
        claims = [Claim(job.id, token) for job in claimed.jobs]
        assert await store.renew(claims, 60) == set(claims)
        outcome = RetryAfter(0.0, "again") if retry else Done()
        assert await store.finish([Ending(claim, outcome) for claim in claims]) == set(claims)
        assert await store.finish([Ending(claim, outcome) for claim in claims]) == set()
        return [] if retry else [claim.id for claim in claims]

    in_threads(work)

    async def counts() -> None:
        stats = await store.stats()
        assert (stats.pending, stats.running, stats.done, stats.dead) == (0, 0, total, 0)
        jobs = await store.find(EVERYTHING, limit=total + 1)
        assert len(jobs) == total == len({job.idempotency_key for job in jobs})
        assert {job.id for job in jobs} == set(runs)
        assert all(job.attempts == 1 + len(job.failures) for job in jobs)

    asyncio.run(counts())
    assert set(created) == {f"k{number}" for number in range(total)}
    assert set(created.values()) == {1}
    assert set(runs.values()) == {1}


@pytest.mark.usefixtures("_switching_often")
def test_a_dedupe_key_never_has_two_unfinished_jobs() -> None:
    store = MemoryStore()
    finished = Counter[int]()

    async def work(index: int) -> None:
        for step in range(200):
            (answer,) = await store.enqueue([NewJob(f"{index}-{step}", "a", key=Key("dedupe", "one"))])
            assert answer.created == (answer.id == f"{index}-{step}")
            token = f"{index}-{step}"
            claimed = await store.claim(token, [Demand(5)], worker="w", lease=60)
            assert len(claimed.jobs) <= 1
            stats = await store.stats()
            assert stats.pending + stats.running <= 1
            held = await store.finish([Ending(Claim(job.id, token), Done()) for job in claimed.jobs])
            finished[index] += len(held)

    in_threads(work)

    async def rest() -> None:
        stats = await store.stats()
        assert stats.done == sum(finished.values())
        assert stats.pending + stats.running <= 1

    asyncio.run(rest())


@pytest.mark.usefixtures("_switching_often")
def test_of_many_writers_one_wins_each_revision() -> None:
    store = MemoryStore()
    won = Counter[int]()

    async def work(index: int) -> None:
        while True:
            document = await store.get_document("n", "k")
            revision = 0 if document is None else document.revision
            if revision >= 500:
                return
            if await store.put_document("n", "k", index, expect=revision) is not None:
                won[revision] += 1  # one winner each, so that no two threads write the same count

    in_threads(work)
    assert won == Counter(range(500))


def test_a_lease_keeper_renews_from_a_thread_while_the_loop_is_blocked() -> None:
    store = MemoryStore()

    async def main() -> None:
        await store.enqueue([NewJob("1", "a")])
        claimed = await store.claim("t", [Demand(1)], worker="w", lease=1)
        renewed: list[set[Claim]] = []

        def keep() -> None:
            keeper = store.lease_keeper()
            renewed.append(keeper.renew([Claim("1", "t"), Claim("1", "other")], 3600))
            keeper.close()

        thread = threading.Thread(target=keep)
        thread.start()
        thread.join(10)  # blocks the loop, as a handler would
        assert renewed == [{Claim("1", "t")}]
        (job,) = await store.get(["1"])
        assert job.lease_until is not None
        assert claimed.jobs[0].lease_until is not None
        assert (job.lease_until - claimed.jobs[0].lease_until).total_seconds() > 3000

    asyncio.run(main())


def test_a_wake_up_comes_from_any_thread_for_new_work_only() -> None:
    store = MemoryStore()
    woken = threading.Event()

    async def main() -> None:
        listener = await store.listen(woken.set)

        async def enqueue(index: int) -> None:
            await store.enqueue([NewJob(f"{index}", "a")])

        in_threads(enqueue, 1)
        assert woken.is_set()
        woken.clear()
        await store.enqueue([NewJob("0", "a")])  # held already
        await store.claim("t", [Demand(1)], worker="w", lease=60)
        await store.finish([Ending(Claim("0", "t"), Done())])
        assert not woken.is_set()
        await listener.close()
        await listener.close()
        await store.enqueue([NewJob("1", "a")])
        assert not woken.is_set()

    asyncio.run(main())


def test_a_listener_whose_loop_has_ended_is_forgotten() -> None:
    store = MemoryStore()
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        raise RuntimeError("Event loop is closed")

    async def main() -> None:
        await store.listen(broken)
        await store.enqueue([NewJob("1", "a")])
        await store.enqueue([NewJob("2", "a")])
        assert calls == [1]

    asyncio.run(main())
