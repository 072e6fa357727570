"""The tables: one way to make them, from many processes at once, beside the application's own (S4, E10)."""

import asyncio
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.core.errors import SchemaTooNew, StoreError, StoreUnavailable
from treadle.core.filter import JobFilter
from treadle.core.job import NewJob
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.sqlite import SQLiteStore
from treadle.stores.sqlite.migrating import migrate, statements_of
from treadle.stores.sqlite.statements import migrations, schema


def run(store, operation):
    async def main():
        try:
            return await operation(store)
        finally:
            await store.close()

    return asyncio.run(main())


def at_version(path, version):
    """A connection to a new file with the tables of an older treadle."""
    old = sqlite3.connect(path, isolation_level=None)
    old.execute("CREATE TABLE treadle_schema (version INTEGER PRIMARY KEY) STRICT")
    for number in range(version):
        for sql in statements_of(migrations()[number]):
            old.execute(sql)
        old.execute("INSERT INTO treadle_schema (version) VALUES (?)", (number + 1,))
    return old


def objects(connection):
    """Every table and index, its SQL without comments and line ends."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return sorted((kind, name, " ".join(re.sub(r"--[^\n]*", "", sql).split())) for kind, name, sql in rows)


def test_the_schema_to_read_is_what_the_migrations_make():
    made, read = sqlite3.connect(":memory:", isolation_level=None), sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(made, "x")
        for statement in statements_of(schema()):
            read.execute(statement)
        assert objects(made) == objects(read)
    finally:
        made.close()
        read.close()


def test_migrating_says_what_it_did_and_does_it_once(tmp_path):
    path = tmp_path / "deep" / "er" / "tasks.db"
    assert "was created, at schema version" in run(SQLiteStore(path), SQLiteStore.migrate)
    assert "is up to date" in run(SQLiteStore(path), SQLiteStore.migrate)


@pytest.mark.parametrize("version", [0, 3])
def test_four_processes_migrate_at_once(tmp_path, version):
    if version:
        at_version(tmp_path / "tasks.db", version).close()
    code = (
        "import asyncio, sys; from treadle.stores.sqlite import SQLiteStore\n"
        "async def main():\n"
        "    store = SQLiteStore(sys.argv[1]); sys.stdin.read(1); print(await store.migrate()); await store.close()\n"
        "asyncio.run(main())"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "tasks.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    said = [process.communicate(timeout=30)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sum(("was brought from" if version else "was created") in text for text in said) == 1
    assert sum("is up to date" in text for text in said) == 3


def test_a_newer_schema_is_refused(tmp_path):
    path, newest = tmp_path / "tasks.db", len(migrations())
    run(SQLiteStore(path), SQLiteStore.migrate)
    other = sqlite3.connect(path)
    with other:
        other.execute("INSERT INTO treadle_schema VALUES (?)", (newest + 1,))
    other.close()
    for operation in (SQLiteStore.migrate, SQLiteStore.stats):
        with pytest.raises(SchemaTooNew, match=rf"version {newest + 1}, and this treadle knows up to {newest}"):
            run(SQLiteStore(path), operation)


def test_a_process_whose_tables_a_newer_one_migrates_works_on_and_says_what_it_cannot_read(tmp_path):
    """What it has claimed it can finish; what needs an index that is gone is a clear error (S4)."""

    async def main(store):
        await store.enqueue([NewJob("1", "a")])
        await store.claim("t", [Demand(1)], worker="w", lease=60)
        newer = sqlite3.connect(tmp_path / "tasks.db")
        with newer:
            newer.execute("DROP INDEX treadle_jobs_at_rest")
            newer.execute("INSERT INTO treadle_schema VALUES (?)", (len(migrations()) + 1,))
        assert await store.finish([Ending(Claim("1", "t"), Done())]) == {Claim("1", "t")}
        await store.enqueue([NewJob("2", "a")])
        assert len((await store.claim("u", [Demand(1)], worker="w", lease=60)).jobs) == 1
        for operation in (store.stats(), store.find(JobFilter(), limit=1), store.count(JobFilter())):
            with pytest.raises(SchemaTooNew, match=r"lacks what .*no such index: treadle_jobs_at_rest.* upgrade this process"):
                await operation
        with pytest.raises(SchemaTooNew, match="knows up to"):
            store.enqueue_on_sync(newer, [NewJob("3", "a")])
        newer.close()

    run(SQLiteStore(tmp_path / "tasks.db"), main)


@pytest.mark.parametrize("version", range(1, len(migrations())))
def test_an_older_schema_is_upgraded_with_live_jobs_in_it(tmp_path, version):
    """Pending, running, done and dead jobs, keys and failures are the same before and after (S4)."""
    path = tmp_path / "tasks.db"
    old = at_version(path, version)
    for number, state in enumerate((0, 1, 2, 3, 4)):
        old.execute(
            "INSERT INTO treadle_jobs (id, queue, name, payload, state, priority, run_at, created_at, attempts, max_attempts,"
            " key_kind, key, worker, lease_until, token, finished_at, last_error)"
            " VALUES (?, 'default', 'job', '[1]', ?, 0, 5, 4, 1, 3, 1, ?, ?, ?, ?, ?, ?)",
            (
                f"id-{number}", state, f"key-{number}", *(("w", 9, "t") if state == 2 else (None, None, None)),
                6 if state > 2 else None, "no" if state == 4 else None,
            ),
        )  # fmt: skip
    before = old.execute("SELECT * FROM treadle_jobs ORDER BY seq").fetchall()
    old.close()

    async def upgraded(store):
        assert f"from schema version {version} to {len(migrations())}" in await store.migrate()
        stats = await store.stats()
        assert (stats.pending, stats.running, stats.done, stats.dead) == (2, 1, 1, 1)
        return (await store.find(JobFilter(), limit=9))[::-1]

    jobs = run(SQLiteStore(path), upgraded)
    assert [job.id for job in jobs] == [f"id-{number}" for number in range(5)]
    assert [job.state.value for job in jobs] == ["pending", "pending", "running", "done", "dead"]
    assert [job.idempotency_key for job in jobs] == [f"key-{number}" for number in range(5)]
    look = sqlite3.connect(path)
    assert look.execute("SELECT * FROM treadle_jobs ORDER BY seq").fetchall() == before
    look.close()


def test_the_applications_tables_and_version_stay(tmp_path):
    path = tmp_path / "app.db"
    app = sqlite3.connect(path)
    app.execute("CREATE TABLE jobs (title TEXT)")
    app.execute("INSERT INTO jobs VALUES ('cook')")
    app.execute("PRAGMA user_version = 77")
    app.commit()
    run(SQLiteStore(path), SQLiteStore.migrate)
    assert app.execute("SELECT title FROM jobs").fetchall() == [("cook",)]
    assert app.execute("PRAGMA user_version").fetchall() == [(77,)]
    app.close()


def refused(store, kind, words):
    async def operations():
        for operation in (store.migrate(), store.stats(), store.enqueue([NewJob("1", "a")]), store.due(["q"])):
            with pytest.raises(kind, match=words) as caught:
                await operation
            assert "\n" not in str(caught.value)
        await store.close()

    asyncio.run(operations())


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("this is no database, but it is long enough to be one, surely. " * 20)
    refused(SQLiteStore(path), StoreError, "is a file but no SQLite database")
    assert path.read_text().startswith("this is no database")


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    refused(SQLiteStore(tmp_path / "file" / "tasks.db"), StoreUnavailable, "cannot be opened")


def test_a_folder_in_place_of_the_file_is_a_clear_error(tmp_path):
    refused(SQLiteStore(tmp_path), StoreUnavailable, "cannot be opened")


def test_a_store_that_could_not_open_opens_later(tmp_path):
    (tmp_path / "data").write_text("")
    store = SQLiteStore(tmp_path / "data" / "tasks.db")

    async def main():
        with pytest.raises(StoreUnavailable):
            await store.stats()
        (tmp_path / "data").unlink()
        assert (await store.stats()).pending == 0
        await store.close()

    asyncio.run(main())


def test_closing_leaves_one_file_and_the_lock(tmp_path):
    run(SQLiteStore(tmp_path / "tasks.db"), lambda store: store.enqueue([NewJob("1", "a")]))
    assert sorted(file.name for file in Path(tmp_path).iterdir()) == ["tasks.db", "tasks.db-lock"]
