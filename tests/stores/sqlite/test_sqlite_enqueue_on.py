"""Enqueueing inside the caller's transaction: the jobs exist if and only if it commits (E10)."""

import asyncio
import sqlite3
import time
from contextlib import asynccontextmanager, closing
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from treadle.core.errors import InvalidArgument, SchemaMissing, StoreUnavailable, WrongDatabase
from treadle.core.filter import EVERYTHING
from treadle.core.job import Key, NewJob
from treadle.stores.sqlite import SQLiteStore, enqueue_on
from treadle.stores.sqlite.opening import LARGE_LOG


@asynccontextmanager
async def opened(path):
    store = SQLiteStore(path)
    await store.migrate()
    try:
        yield store
    finally:
        await store.close()


async def ids(store):
    return sorted(job.id for job in await store.find(EVERYTHING, limit=99))


@pytest.fixture()
def path(tmp_path):
    """A database with a table of the application."""
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection, connection:
        connection.execute("CREATE TABLE users (name TEXT)")
    return tmp_path / "app.db"


SYNC = ["sqlite3", "sqlite3 in autocommit mode", "connection", "session", "scoped session"]


def caller(kind, path):
    """A connection or session, and what runs SQL on it, commits, rolls back and closes."""
    if kind.startswith("sqlite3"):
        connection = sqlite3.connect(path, isolation_level=None if "autocommit" in kind else "")
        if "autocommit" in kind:
            connection.execute("BEGIN")
        return connection, connection.execute, connection.commit, connection.rollback, connection.close
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    if kind == "connection":
        one = engine.connect()
    elif kind == "session":
        one = Session(engine)
    else:
        one = scoped_session(sessionmaker(engine))
    return one, lambda sql: one.execute(text(sql)), one.commit, one.rollback, one.close


@pytest.mark.parametrize("kind", SYNC)
def test_the_jobs_share_the_fate_of_a_blocking_transaction(kind, path):
    async def main():
        async with opened(path) as store:
            one, execute, commit, rollback, close = caller(kind, path)
            execute("INSERT INTO users VALUES ('ada')")
            [answer] = store.enqueue_on_sync(one, [NewJob("kept", "mail")])
            assert (answer.id, answer.created, answer.job.name) == ("kept", True, "mail")
            assert await ids(store) == []
            commit()
            assert await ids(store) == ["kept"]
            if "autocommit" in kind:
                execute("BEGIN")
            execute("INSERT INTO users VALUES ('bob')")
            store.enqueue_on_sync(one, [NewJob("gone", "mail"), NewJob("gone2", "mail")])
            rollback()
            assert await ids(store) == ["kept"]
            close()

    asyncio.run(main())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM users").fetchall() == [("ada",)]


@pytest.mark.parametrize("kind", ["connection", "session", "sqlite3"])
def test_the_jobs_share_the_fate_of_an_awaited_transaction(kind, path):
    async def main():
        async with opened(path) as store:
            if kind == "sqlite3":
                engine = None
                one, execute, commit, rollback, close = caller(kind, path)
            else:
                engine = create_async_engine(f"sqlite+aiosqlite:///{path}", poolclass=NullPool)
                one = await engine.connect().start() if kind == "connection" else AsyncSession(engine)
                execute, commit, rollback, close = lambda sql: one.execute(text(sql)), one.commit, one.rollback, one.close

            async def awaited(result):
                if engine is not None:
                    await result

            await awaited(execute("INSERT INTO users VALUES ('ada')"))
            [answer] = await store.enqueue_on(one, [NewJob("kept", "mail", key=Key("idempotency", "k"))])
            assert answer.created
            assert await ids(store) == []
            await awaited(commit())
            [again] = await store.enqueue_on(one, [NewJob("other", "mail", key=Key("idempotency", "k"))])
            assert (again.id, again.created) == ("kept", False)
            await awaited(rollback())
            await awaited(execute("INSERT INTO users VALUES ('bob')"))
            await store.enqueue_on(one, [NewJob("gone", "mail")])
            await awaited(rollback())
            assert await ids(store) == ["kept"]
            await awaited(close())
            if engine is not None:
                await engine.dispose()

    asyncio.run(main())


def test_without_a_transaction_a_connection_in_autocommit_mode_stores_all_or_nothing(path):
    async def main():
        async with opened(path) as store:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                with pytest.raises(InvalidArgument):
                    store.enqueue_on_sync(connection, [*(NewJob(str(n), "a") for n in range(1005)), NewJob("\ud800", "a")])
                assert await ids(store) == []
                store.enqueue_on_sync(connection, [NewJob("1", "a")])
                assert await ids(store) == ["1"]

    asyncio.run(main())


def test_a_committed_job_wakes_the_listener(path):
    async def main():
        async with opened(path) as store:
            woken, loop = asyncio.Event(), asyncio.get_running_loop()
            listener = await store.listen(lambda: loop.call_soon_threadsafe(woken.set))
            with closing(sqlite3.connect(path)) as connection:
                store.enqueue_on_sync(connection, [NewJob("1", "a")])
                connection.commit()
                await asyncio.wait_for(woken.wait(), 10)
            await listener.close()

    asyncio.run(main())


def test_another_database_is_named(path, tmp_path):
    async def main():
        async with opened(path) as store:
            with closing(sqlite3.connect(tmp_path / "other.db")) as other, closing(sqlite3.connect(":memory:")) as memory:
                with pytest.raises(WrongDatabase, match=r"other\.db, and the store to .*app\.db"):
                    store.enqueue_on_sync(other, [NewJob("1", "a")])
                with pytest.raises(WrongDatabase, match="a database in memory"):
                    await store.enqueue_on(memory, [NewJob("1", "a")])
            in_memory = SQLiteStore(":memory:")
            with closing(sqlite3.connect(path)) as connection, pytest.raises(WrongDatabase, match="the store to :memory:"):
                in_memory.enqueue_on_sync(connection, [NewJob("1", "a")])
            await in_memory.close()
            assert await ids(store) == []

    asyncio.run(main())


def test_a_link_to_the_file_is_the_same_database(path, tmp_path):
    async def main():
        link = tmp_path / "link.db"
        link.symlink_to(path)
        async with opened(path) as store:
            with closing(sqlite3.connect(link)) as connection:
                store.enqueue_on_sync(connection, [NewJob("1", "a")])
                connection.commit()
            assert await ids(store) == ["1"]

    asyncio.run(main())


@pytest.mark.parametrize("connection", [None, "sqlite:app.db", object()])
def test_what_is_no_connection_is_refused(connection, path):
    async def main():
        async with opened(path) as store:
            with pytest.raises(InvalidArgument, match=r"connection must be a sqlite3\.Connection, or a SQLAlchemy"):
                await store.enqueue_on(connection, [NewJob("1", "a")])

    asyncio.run(main())


def test_an_async_session_is_refused_by_the_blocking_call(path):
    async def main():
        async with opened(path) as store:
            async with AsyncSession(create_async_engine(f"sqlite+aiosqlite:///{path}", poolclass=NullPool)) as session:
                with pytest.raises(InvalidArgument, match="cannot be used by a blocking call"):
                    store.enqueue_on_sync(session, [NewJob("1", "a")])

    asyncio.run(main())


def test_tables_that_are_missing_are_an_error_that_says_what_to_do(path):
    async def main():
        store = SQLiteStore(path)
        with closing(sqlite3.connect(path)) as connection, pytest.raises(SchemaMissing, match="run `treadle migrate`"):
            store.enqueue_on_sync(connection, [NewJob("1", "a")])
        await store.close()

    asyncio.run(main())


def test_a_store_opens_while_the_caller_holds_a_transaction(path):
    async def main():
        async with opened(path):
            pass
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("INSERT INTO users VALUES ('ada')")
            store = SQLiteStore(path, busy_timeout=0.5)
            assert (await store.stats()).pending == 0
            await store.enqueue_on(connection, [NewJob("1", "a")])
            connection.commit()
            assert await ids(store) == ["1"]
            await store.close()

    asyncio.run(main())


def test_a_lock_that_outlasts_the_callers_patience_is_a_clear_error(path):
    async def main():
        async with opened(path) as store:
            engine = create_engine(f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": 0.1})
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with engine.connect() as one, pytest.raises(StoreUnavailable, match="held locked by another program"):
                    await store.enqueue_on(one, [NewJob("1", "a")])
                other.execute("ROLLBACK")
            engine.dispose()

    asyncio.run(main())


def test_rows_of_any_shape_on_the_callers_connection_do_not_matter(path):
    async def main():
        async with opened(path) as store:
            with closing(sqlite3.connect(path)) as connection:
                connection.row_factory = lambda cursor, row: {"row": row}
                store.enqueue_on_sync(connection, [NewJob("1", "a"), NewJob("1", "a")])
                connection.commit()
            assert await ids(store) == ["1"]

    asyncio.run(main())


# -- the log, which the caller's connection does not copy into the file


def written(path, store, times, connection):
    """So many transactions of 200 KB, each with a job."""
    for _ in range(times):
        connection.execute("INSERT INTO users VALUES (?)", ("x" * 200_000,))
        store.enqueue_on_sync(connection, [NewJob(uuid4().hex, "greet")])
        connection.commit()


def log_of(path):
    return Path(f"{path}-wal").stat().st_size


def pragma(connection):
    return connection.execute("PRAGMA wal_autocheckpoint").fetchone()[0]


def test_where_only_callers_write_the_store_keeps_the_log_short(path):
    asyncio.run(migrated(path))
    store = SQLiteStore(path)
    with closing(sqlite3.connect(path, timeout=60)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for large in (True, False) * 2:  # it grows, is copied and cut, and grows again
            deadline = time.monotonic() + 60
            while (log_of(path) > 2 * LARGE_LOG) is not large:
                assert time.monotonic() < deadline, f"{log_of(path):,} bytes"
                written(path, store, 1, connection)
        assert pragma(connection) == 0
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    asyncio.run(store.close())


def test_a_store_that_is_only_lent_to_callers_starts_no_thread_for_a_short_log(path):
    asyncio.run(migrated(path))
    store = SQLiteStore(path)
    with closing(sqlite3.connect(path)) as connection:
        written(path, store, 3, connection)
    assert not store._connection._running


def test_a_newer_sqlite_makes_its_checkpoints_itself(path, monkeypatch):
    monkeypatch.setattr(enqueue_on, "SAFE", (3, 0, 0))
    asyncio.run(migrated(path))
    store = SQLiteStore(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        written(path, store, 100, connection)
        assert pragma(connection) == 1000
        assert log_of(path) < 3 * LARGE_LOG
    assert not store._connection._running


async def migrated(path):
    async with opened(path):
        pass
