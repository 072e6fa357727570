"""Faults of other systems, as scenarios that need a whole library on a real file (95, 97, 103)."""

import asyncio
import gc
import logging
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import psutil
import pytest

from treadle import Fixed, Tasks
from treadle.core.store import Demand
from treadle.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.timeout(120)


def test_readers_writers_and_an_outside_lock_never_make_a_call_fail(tmp_path):
    """Scenario 97: 8 threads enqueue 500 each while 8 jobs run at a time, another process lists, another connection locks."""
    path = tmp_path / "jobs.db"
    tasks = Tasks(f"sqlite:{path}", concurrency=8)
    runs: list[list[int]] = []

    @tasks.handler("job")
    async def job(payload):
        runs.append(payload)

    failed: list[BaseException] = []

    def enqueue(number):
        try:
            for index in range(500):
                tasks.sync.enqueue("job", [number, index])
        except BaseException as error:
            failed.append(error)

    tasks.sync.start()
    command = f"{sys.executable} -m treadle.cli.main list --json --store sqlite:{path}"
    lister = subprocess.Popen(
        ["sh", "-c", f'while [ ! -e "$0" ]; do {command} > /dev/null || exit 3; done', str(tmp_path / "stop")],
        stderr=subprocess.PIPE,
    )
    threads = [threading.Thread(target=enqueue, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    held = threading.Event()
    for _ in range(2):
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as outside:
            outside.execute("BEGIN IMMEDIATE")
            held.wait(1)  # how long the lock is held is what is tested
            outside.execute("COMMIT")
    for thread in threads:
        thread.join()

    deadline = threading.Event()
    for _ in range(3000):
        if tasks.sync.stats().done == 4000:
            break
        deadline.wait(0.01)
    (tmp_path / "stop").touch()
    assert lister.wait(30) == 0, lister.stderr.read()
    lister.stderr.close()
    tasks.sync.close()
    assert failed == []
    assert sorted(runs) == [[number, index] for number in range(8) for index in range(500)]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_memory_files_and_threads_do_not_grow_with_finished_work(tmp_path, kind):
    """Scenario 103: 30,000 jobs of changing keys, a third of which fail; from the 10,000th on nothing grows."""
    process = psutil.Process(os.getpid())

    async def main():
        quiet = logging.getLogger("quiet")  # pytest would keep each line of the log, with its traceback
        quiet.setLevel(logging.CRITICAL)
        url = "memory:" if kind == "memory" else f"sqlite:{tmp_path}/jobs.db"
        tasks = Tasks(url, concurrency=50, retry=Fixed(0), logger=quiet)

        @tasks.handler("job", max_attempts=1)
        async def job(payload):
            if payload % 3 == 0:
                raise ValueError(payload)

        async def work(start, stop):
            for first in range(start, stop, 1000):
                await tasks.enqueue_many(
                    [{"name": "job", "payload": n, "idempotency_key": f"key-{n}"} for n in range(first, first + 1000)]
                )
                await tasks.drain()
                await tasks.prune(0)  # what is stored is the store's; what is left then would be ours

        await work(0, 10_000)
        before = measured()
        await work(10_000, 30_000)
        after = measured()
        await tasks.close()
        return before, after

    def measured():
        gc.collect()
        return process.memory_info().rss / 2**20, process.num_fds(), threading.active_count()

    (memory, files, threads), after = asyncio.run(main())
    assert after[0] - memory < 20, f"grew from {memory:.0f} to {after[0]:.0f} MiB"
    assert after[1] <= files
    assert after[2] <= threads


def test_twenty_thousand_due_at_once_half_of_them_expired(tmp_path):
    """Scenario 95: a sweep and a worker get through them in bounded pieces, and so does a prune."""

    async def main():
        store = SQLiteStore(tmp_path / "jobs.db")
        tasks = Tasks(store, concurrency=500, lease=0.05)
        tasks.handle("job", lambda payload: None)
        for _ in range(4):
            await tasks.enqueue_many([{"name": "job"}] * 5000)
        for number in range(10):
            claimed = await store.claim(f"t{number}", [Demand(1000, names={"job": 5})], worker="gone", lease=0.001)
            assert len(claimed.jobs) == 1000

        @tasks.handler("job")
        async def job(payload):
            pass

        assert await tasks.drain() == 20_000
        stats = await tasks.stats()
        assert (stats.done, stats.pending, stats.running, stats.dead) == (20_000, 0, 0, 0)
        assert {job.attempts for job in await tasks.list(limit=1000)} <= {1, 2}
        assert (await tasks.prune(0)).deleted == 20_000
        await tasks.close()

    asyncio.run(main())
