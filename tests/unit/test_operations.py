"""Operations on jobs of several faces at once (E17)."""

import asyncio

from treadle.core.filter import JobFilter
from treadle.core.job import NewJob
from treadle.core.outcome import Dead
from treadle.core.store import Claim, Demand, Ending
from treadle.engine.clock import EngineClock
from treadle.engine.ids import new_ids
from treadle.engine.operations import Operations
from treadle.stores.memory import MemoryStore


def test_all_dead_letters_go_round_by_the_rule_of_their_queue_those_of_plugins_and_functions_too():
    async def main():
        store = MemoryStore()
        operations = Operations(store, EngineClock())
        queues = ("default", "functions", "plugin:mail", "plugin:report")
        ids = new_ids(1, len(queues))
        await store.enqueue([NewJob(id, "x", queue=queue, max_attempts=1) for id, queue in zip(ids, queues, strict=True)])
        claimed = await store.claim("t", [Demand(9, queues)], worker="w", lease=60)
        await store.finish([Ending(Claim(job.id, "t"), Dead("broken")) for job in claimed.jobs])
        limited = await operations.redrive_all(JobFilter(), limit=1)
        assert list(limited.revived) == ids[:1]
        rest = await operations.redrive_all(JobFilter())
        assert sorted(rest.revived) == ids[1:]
        return {job.queue: job.attempts for job in await operations.list(JobFilter())}

    assert asyncio.run(main()) == {"default": 0, "functions": 1, "plugin:mail": 0, "plugin:report": 0}
