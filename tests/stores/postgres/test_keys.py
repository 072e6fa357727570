"""Keys under contention: no third outcome, and no deadlock that anyone sees (E8, scenario 71)."""

from __future__ import annotations

import asyncio
import itertools
import random

from treadle.core.filter import EVERYTHING
from treadle.core.job import Key, NewJob
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.postgres import PostgresStore
from treadle.testing.factory import uuid7


def test_enqueueing_at_the_moment_the_old_one_ends(url: str) -> None:
    """Ten callers enqueue one key over and over while it is worked off: each call finds an unfinished job or makes one."""

    async def main() -> None:
        stores = [PostgresStore(url) for _ in range(2)]
        numbers, clock = itertools.count(1), itertools.count(1)
        starts: dict[str, int] = {}
        ended: dict[str, int] = {}
        over = False
        calls: list[tuple[int, str, bool]] = []

        async def call(store: PostgresStore) -> None:
            for _ in range(60):
                began = next(clock)
                [answer] = await store.enqueue([NewJob(uuid7(next(numbers)), "job", key=Key("dedupe", "k"))])
                calls.append((began, answer.id, answer.created))

        async def work(store: PostgresStore) -> None:
            while True:
                stopping = over
                token = f"token-{next(numbers)}"
                claimed = await store.claim(token, [Demand(5)], worker="w", lease=60.0)
                for job in claimed.jobs:
                    assert job.id not in starts, "no job starts twice"
                    starts[job.id] = next(clock)
                    await store.finish([Ending(Claim(job.id, token), Done())])
                    ended[job.id] = next(clock)
                if not claimed.jobs and stopping:
                    return

        workers = [asyncio.create_task(work(store)) for store in stores]
        await asyncio.gather(*(call(stores[number % 2]) for number in range(10)))
        over = True
        await asyncio.gather(*workers)
        assert len(calls) == 600
        for began, id, created in calls:
            # Created, it runs after the call began; found, it was unfinished then, and its end came after the call began.
            assert starts[id] > began if created else ended[id] > began, "a request was lost"
        stats = await stores[0].stats()
        assert (stats.pending, stats.running, stats.done) == (0, 0, sum(created for _, _, created in calls))
        for store in stores:
            await store.close()

    asyncio.run(main())


def test_batches_with_the_same_keys_in_any_order_do_not_block_each_other(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url)
        numbers = itertools.count(1)
        chance = random.Random(7)

        async def call() -> int:
            keys = [f"k{number}" for number in range(40)]
            chance.shuffle(keys)
            answers = await store.enqueue([NewJob(uuid7(next(numbers)), "job", key=Key("idempotency", key)) for key in keys])
            return sum(answer.created for answer in answers)

        assert sum(await asyncio.gather(*(call() for _ in range(16)))) == 40
        assert await store.count(EVERYTHING) == 40
        await store.close()

    asyncio.run(main())


def test_finishing_and_renewing_the_same_jobs_in_any_order_do_not_block_each_other(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url)
        jobs = [NewJob(uuid7(number), "job") for number in range(300)]
        await store.enqueue(jobs)
        claimed = await store.claim("t", [Demand(300)], worker="w", lease=60.0)
        claims = [Claim(job.id, "t") for job in claimed.jobs]
        chance = random.Random(11)

        async def renew() -> None:
            for _ in range(10):
                await store.renew(chance.sample(claims, 200), 60.0)

        async def finish(part: list[Claim]) -> int:
            ended = 0
            for at in range(0, len(part), 20):
                ended += len(await store.finish([Ending(claim, Done()) for claim in chance.sample(part[at : at + 20], 20)]))
            return ended

        shuffled = chance.sample(claims, 300)
        results = await asyncio.gather(renew(), renew(), *(finish(shuffled[at : at + 100]) for at in (0, 100, 200)))
        assert sum(number for number in results if number is not None) == 300
        assert (await store.stats()).done == 300
        await store.close()

    asyncio.run(main())
