"""What one `Tasks` is made of, in several event loops and processes: store, worker id, clock, and whether it has started."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from treadle import InvalidArgument, Tasks
from treadle.stores.memory import MemoryStore

pytestmark = pytest.mark.timeout(60)


def run(main):
    return asyncio.run(asyncio.wait_for(main, 30))


# -- the store


class Half:
    async def enqueue(self, jobs, *, now=None):
        return []


@pytest.mark.parametrize(
    "store, told",
    [
        (Path("jobs.db"), r"not PosixPath; for a file write 'sqlite:jobs\.db'"),
        (b"memory:", r"a URL, such as 'sqlite:jobs\.db', or a store object, not bytes$"),
        (MemoryStore, "not the class MemoryStore itself"),
        (Half(), "not Half, which lacks claim, .*, lease_keeper, "),
    ],
)
def test_what_is_no_store_is_refused_where_it_is_given(store, told):
    with pytest.raises(InvalidArgument, match=told) as refused:
        Tasks(store)
    assert "\n" not in str(refused.value)
    with pytest.raises(InvalidArgument, match=told):
        Tasks("memory:").configure(store=store)


# -- whether it has started


def test_what_must_come_before_start_is_refused_while_a_worker_runs_in_any_loop():
    tasks = Tasks("memory:")
    tasks.handle("job", lambda payload: None)

    def refused():
        for call in (
            lambda: tasks.every("job", 60),
            lambda: tasks.cron("name", "* * * * *", "job"),
            lambda: tasks.configure(concurrency=3),
        ):
            with pytest.raises(InvalidArgument, match="before start"):
                call()

    async def main():
        starting = asyncio.create_task(tasks.start())
        await asyncio.sleep(0)
        refused()
        await starting
        await tasks.stop()
        refused()  # the one in the loop of the blocking twins still runs

    tasks.sync.start()
    run(main())
    tasks.sync.stop()
    tasks.every("job", 60)
    tasks.configure(concurrency=3)
    tasks.sync.close()


def test_a_worker_that_ended_with_its_loop_runs_no_longer():
    tasks = Tasks("memory:")
    tasks.handle("job", lambda payload: None)
    asyncio.run(tasks.start())
    tasks.every("job", 60)
    tasks.configure(concurrency=3)


# -- the worker id

FORKING = """
import os
from treadle import Tasks

own, given = Tasks("memory:"), Tasks("memory:", worker_id="mine")
print(own.settings.worker_id, os.getpid(), own.settings.worker_id, given.settings.worker_id, flush=True)
if os.fork():
    os.wait()
else:
    print(own.settings.worker_id, os.getpid(), own.settings.worker_id, given.settings.worker_id, flush=True)
"""


def test_a_child_of_a_fork_is_a_worker_of_its_own():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, text=True, timeout=30, check=True
    )
    ids = []
    for line in done.stdout.splitlines():
        worker_id, process, again, given = line.split()
        assert worker_id == again
        assert worker_id.split(":")[1] == process
        assert given == "mine"
        ids.append(worker_id)
    assert len(set(ids)) == 2


def test_the_worker_id_is_the_one_that_claims():
    async def main():
        tasks, seen = Tasks("memory:"), []

        @tasks.handler("job")
        async def job(payload, ctx):
            seen.append(ctx.job.worker)

        await tasks.enqueue("job")
        await tasks.drain()
        tasks.configure(concurrency=2)
        assert seen == [tasks.settings.worker_id]

    run(main())


# -- the clock


def test_a_clock_in_another_zone_tells_the_store_utc():
    class Berlin:
        def now(self):
            return datetime(2026, 3, 29, 1, 30, tzinfo=ZoneInfo("Europe/Berlin"))  # half an hour before the clocks go forward

    async def main():
        tasks = Tasks("memory:", clock=Berlin())
        tasks.handle("job", lambda payload: None)
        job = (await tasks.enqueue("job", delay=3600)).job
        assert job.created_at.tzinfo is job.run_at.tzinfo is UTC
        assert job.run_at == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
        assert await tasks.drain() == 0

    run(main())
