"""What the disk sees: checkpoints, a full disk, long payloads, and prunes with a long backlog."""

import asyncio
import random
import sqlite3
import threading

import pytest

from treadle.core.errors import StoreFull
from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import NewJob, State
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.sqlite import SQLiteStore, finding
from treadle.testing import JobFactory

MIB = 1024 * 1024


def test_the_log_is_checkpointed_as_it_grows(tmp_path):
    path = tmp_path / "tasks.db"

    async def main():
        store = SQLiteStore(path)
        for number in range(24):
            await store.enqueue([NewJob(str(number), "a", '"' + "x" * MIB + '"')])
            log = (tmp_path / "tasks.db-wal").stat().st_size
            assert log < 8 * MIB
        assert path.stat().st_size > 20 * MIB
        await store.close()

    asyncio.run(main())


def test_a_reader_that_stays_keeps_the_log_but_stops_nobody(tmp_path):
    path = tmp_path / "tasks.db"

    async def main():
        store = SQLiteStore(path)
        await store.migrate()
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM treadle_jobs").fetchall()
        for number in range(12):
            await store.enqueue([NewJob(str(number), "a", '"' + "x" * MIB + '"')])
        assert reader.execute("SELECT count(*) FROM treadle_jobs").fetchall() == [(0,)]
        reader.close()
        await store.close()

    asyncio.run(main())
    with pytest.raises(FileNotFoundError):
        (tmp_path / "tasks.db-wal").stat()


def test_a_full_disk_is_a_clear_error_and_nothing_is_half_written(tmp_path):
    async def main():
        store = SQLiteStore(tmp_path / "tasks.db")
        await store.enqueue([NewJob("0", "a")])
        connection = store._connection._running[0].writer._connection
        [(pages,)] = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {pages + 20}").close()
        big = [NewJob(f"b{number}", "a", '"' + "x" * 50_000 + '"') for number in range(10)]
        small = [store.enqueue([NewJob("1", "a")]), store.enqueue(big)]
        answers = await asyncio.gather(*small, return_exceptions=True)
        assert any(isinstance(one, StoreFull) and "no room left" in str(one) for one in answers)
        assert not {job.id for job in await store.find(EVERYTHING, limit=99)} & {job.id for job in big}
        connection.execute("PRAGMA max_page_count = 1000000").close()
        assert all(one.created for one in await store.enqueue(big))
        await store.close()

    asyncio.run(main())


def test_a_claim_of_many_long_payloads(tmp_path):
    """Together they are beyond what SQLite lets one value be, if they were read as one."""

    async def main():
        store = SQLiteStore(tmp_path / "tasks.db")
        text = '"' + "é" * 20_000 + '"'
        await store.enqueue([NewJob(f"{number:04}", "a", text if number % 2 else '"short"') for number in range(300)])
        claimed = await store.claim("t", [Demand(300)], worker="w", lease=60)
        assert [job.id for job in claimed.jobs] == [f"{number:04}" for number in range(300)]
        assert all(job.payload_json == (text if int(job.id) % 2 else '"short"') for job in claimed.jobs)
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("queues", [None, frozenset({"default"})])
def test_a_prune_in_small_steps_takes_the_oldest_ids_first(queues, monkeypatch):
    """However the jobs that are old enough are found: by sorting those, or by looking at the oldest ids."""
    monkeypatch.setattr(finding, "_MANY", 10)

    async def main():
        store = SQLiteStore(":memory:")
        make = JobFactory(store)
        random.seed(7)
        jobs = [make.new("a") for _ in range(80)]
        await store.enqueue(jobs, now=make.clock.now())
        claimed = await store.claim("t", [Demand(80)], worker="w", lease=60, now=make.clock.now())
        for job in random.sample(list(claimed.jobs), 60):
            await store.finish([Ending(Claim(job.id, "t"), Done())], now=make.clock.advance(1))
        now = make.clock.now()
        which = JobFilter(states=frozenset({State.DONE}), queues=queues, older_than=20.0, keyed=False)
        left = await store.find(EVERYTHING, limit=99)
        while meant := sorted(job.id for job in left if which.matches(job, now)):
            assert await store.count(which, now=now) == len(meant)
            assert await store.delete(which, limit=7, now=now) == min(7, len(meant))
            left = await store.find(EVERYTHING, limit=99)
            assert not {job.id for job in left} & set(meant[:7])
        assert await store.delete(which, limit=7, now=now) == 0
        assert len(left) == 80 - 40
        await store.close()

    asyncio.run(main())


def test_a_new_file_that_another_connection_is_writing_to_is_waited_for(tmp_path):
    """The switch to the write-ahead log is the one statement for which SQLite itself does not wait."""
    path = tmp_path / "app.db"
    app = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    app.execute("CREATE TABLE people (name TEXT)")
    app.execute("BEGIN IMMEDIATE")
    app.execute("INSERT INTO people VALUES ('ada')")
    threading.Timer(0.3, lambda: app.execute("COMMIT")).start()

    async def main():
        store = SQLiteStore(path)
        await store.migrate()
        await store.close()

    asyncio.run(main())
    assert app.execute("SELECT count(*) FROM people").fetchone() == (1,)
    app.close()
