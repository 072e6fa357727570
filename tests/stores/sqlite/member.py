"""A process of the tests, run by path: `member.py ROLE PATH ...`; it says on stdout what it did."""

import asyncio
import os
import sys

from treadle.core.job import NewJob
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.sqlite import SQLiteStore


async def hammer(path, number, jobs):
    """Enqueue so many jobs one by one while claiming whatever is there; says the ids that were run."""
    store = SQLiteStore(path)
    ran = []

    async def fill():
        for step in range(int(jobs)):
            await store.enqueue([NewJob(f"{number}-{step:04}", "a")])

    async def work():
        empty = 0
        while empty < 50:
            token = os.urandom(8).hex()
            claimed = await store.claim(token, [Demand(7)], worker=number, lease=60)
            ran.extend(job.id for job in claimed.jobs)
            await store.finish([Ending(Claim(job.id, token), Done()) for job in claimed.jobs])
            empty = empty + 1 if filled.done() and not claimed.jobs else 0

    filled = asyncio.ensure_future(fill())
    await asyncio.gather(filled, work())
    await store.close()
    print("\n".join(ran))


async def write_until_killed(path):
    """Enqueue batches for ever, saying each id only after it is stored."""
    store = SQLiteStore(path)
    number = 0
    while True:
        batch = [NewJob(f"{number + step:08}", "a", '"' + "x" * 200 + '"') for step in range(20)]
        for answer in await store.enqueue(batch):
            print(answer.id)
        number += 20
        sys.stdout.flush()


async def enqueue_when_told(path):
    """Enqueue a job for each line that is read."""
    store = SQLiteStore(path)
    await store.migrate()
    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin):
        await store.enqueue([NewJob(f"w{number}", "a")])
    await store.close()


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    asyncio.run({"hammer": hammer, "write": write_until_killed, "enqueue": enqueue_when_told}[role](*arguments))
