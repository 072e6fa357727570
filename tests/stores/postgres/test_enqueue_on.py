"""Enqueueing in the caller's own transaction, on every kind of connection (E10)."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
import sqlalchemy.ext.asyncio as alchemy
import sqlalchemy.orm
from tests.servers.postgres import shared_server

from treadle.core.errors import InvalidArgument, SchemaMissing, TreadleError, WrongDatabase
from treadle.core.filter import EVERYTHING
from treadle.core.job import Key, NewJob
from treadle.core.policies.limits import FAR_FUTURE
from treadle.stores.postgres import PostgresStore
from treadle.testing.factory import uuid7


class Undo(Exception):
    """Rolls back."""


# Each way gives a connection or session inside a transaction, which `Undo` rolls back.


@contextlib.asynccontextmanager
async def psycopg_async(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        async with connection.transaction():
            yield connection


@contextlib.asynccontextmanager
async def psycopg_async_in_another_zone(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, options="-c timezone=Pacific/Kiritimati") as connection:
        yield connection


@contextlib.asynccontextmanager
async def asyncpg_connection(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def asyncpg_pool(url: str) -> AsyncIterator[Any]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        async with connection.transaction():
            yield connection


def _alchemy_async(driver: str, session: bool) -> Callable[[str], contextlib.AbstractAsyncContextManager[Any]]:
    @contextlib.asynccontextmanager
    async def way(url: str) -> AsyncIterator[Any]:
        engine = alchemy.create_async_engine(url.replace("postgresql:", f"postgresql+{driver}:"))
        try:
            if session:
                async with alchemy.AsyncSession(engine) as one, one.begin():
                    yield one
            else:
                async with engine.begin() as connection:
                    yield connection
        finally:
            await engine.dispose()

    return way


ASYNC = {
    "psycopg": psycopg_async,
    "psycopg in another zone": psycopg_async_in_another_zone,
    "asyncpg": asyncpg_connection,
    "asyncpg pool": asyncpg_pool,
    "SQLAlchemy AsyncConnection, psycopg": _alchemy_async("psycopg", False),
    "SQLAlchemy AsyncSession, psycopg": _alchemy_async("psycopg", True),
    "SQLAlchemy AsyncConnection, asyncpg": _alchemy_async("asyncpg", False),
    "SQLAlchemy AsyncSession, asyncpg": _alchemy_async("asyncpg", True),
}


@contextlib.contextmanager
def psycopg_sync(url: str) -> Iterator[Any]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        yield connection


def _alchemy_sync(driver: str, session: bool) -> Callable[[str], contextlib.AbstractContextManager[Any]]:
    @contextlib.contextmanager
    def way(url: str) -> Iterator[Any]:
        engine = sqlalchemy.create_engine(url.replace("postgresql:", f"postgresql+{driver}:"))
        try:
            if session:
                with sqlalchemy.orm.Session(engine) as one, one.begin():
                    yield one
            else:
                with engine.begin() as connection:
                    yield connection
        finally:
            engine.dispose()

    return way


SYNC = {
    "psycopg": psycopg_sync,
    "SQLAlchemy Connection, psycopg": _alchemy_sync("psycopg", False),
    "SQLAlchemy Session, psycopg": _alchemy_sync("psycopg", True),
}
if importlib.util.find_spec("psycopg2"):
    SYNC["SQLAlchemy Connection, psycopg2"] = _alchemy_sync("psycopg2", False)
    SYNC["SQLAlchemy Session, psycopg2"] = _alchemy_sync("psycopg2", True)


def _jobs() -> list[NewJob]:
    return [
        NewJob(uuid7(1), "plain", '{"email":"ada@example.com"}', delay=90.25),
        NewJob(uuid7(2), "odd", '"\\u0000 é 😀 \\\\ %s :name $1 \'"', priority=-3, max_attempts=2, queue="q"),
        NewJob(uuid7(3), "keyed", key=Key("idempotency", "k:1")),
        NewJob(uuid7(4), "keyed", key=Key("idempotency", "k:1")),
        NewJob(uuid7(5), "late", run_at=FAR_FUTURE),
    ]


def _plain(url: str) -> str:
    return url.partition("?")[0]


async def _check(store: PostgresStore, answers: list[Any]) -> None:
    assert [answer.created for answer in answers] == [True, True, True, False, True]
    assert answers[3].id == answers[2].id
    stored = {job.id: job for job in await store.find(EVERYTHING, limit=10)}
    assert len(stored) == 4
    for answer in answers:
        assert answer.job == stored[answer.id], "the answer is the job as it is stored"
    assert (stored[uuid7(1)].run_at - stored[uuid7(1)].created_at).total_seconds() == 90.25
    assert stored[uuid7(5)].run_at == FAR_FUTURE


@pytest.mark.parametrize("way", ASYNC.values(), ids=ASYNC.keys())
def test_committed_there_is_a_job_and_a_wake_up_and_rolled_back_neither(way: Any, url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url)
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        listener = await store.listen(lambda: loop.call_soon_threadsafe(woken.set))
        await asyncio.wait_for(woken.wait(), 5)
        woken.clear()
        with contextlib.suppress(Undo):
            async with way(_plain(url)) as connection:
                answers = await store.enqueue_on(connection, _jobs())
                assert answers[0].created
                assert await store.count(EVERYTHING) == 0, "before the commit nobody else sees the job"
                raise Undo
        assert await store.count(EVERYTHING) == 0, "rolled back, there is no job"
        assert not woken.is_set(), "rolled back, there is no wake-up"
        async with way(_plain(url)) as connection:
            answers = await store.enqueue_on(connection, _jobs())
            assert await store.count(EVERYTHING) == 0
        await asyncio.wait_for(woken.wait(), 5)
        await _check(store, answers)
        async with way(_plain(url)) as connection:
            again = await store.enqueue_on(connection, [NewJob(uuid7(9), "keyed", key=Key("idempotency", "k:1"))])
        assert (again[0].created, again[0].job) == (False, answers[2].job)
        await listener.close()
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("way", SYNC.values(), ids=SYNC.keys())
def test_a_blocking_connection_does_the_same(way: Any, url: str) -> None:
    store = PostgresStore(url)
    with contextlib.suppress(Undo):
        with way(_plain(url)) as connection:
            assert store.enqueue_on_sync(connection, _jobs())[0].created
            raise Undo
    assert asyncio.run(store.count(EVERYTHING)) == 0
    with way(_plain(url)) as connection:
        answers = store.enqueue_on_sync(connection, _jobs())
    asyncio.run(_check(store, answers))
    with way(_plain(url)) as connection:
        [again] = asyncio.run(store.enqueue_on(connection, [NewJob(uuid7(9), "keyed", key=Key("idempotency", "k:1"))]))
    assert (again.created, again.job) == (False, answers[2].job), "an async caller may hand a blocking connection in"
    asyncio.run(store.close())


@pytest.mark.parametrize("way", ASYNC.values(), ids=ASYNC.keys())
def test_another_database_is_refused_and_its_transaction_goes_on(way: Any, url: str, database: str) -> None:
    async def main() -> None:
        store = PostgresStore(url)
        async with way(database) as connection:
            with pytest.raises(WrongDatabase, match="another database"):
                await store.enqueue_on(connection, _jobs())
            run = getattr(connection, "fetch", None) or connection.execute
            await run("select 1" if "sqlalchemy" not in type(connection).__module__ else sqlalchemy.text("select 1"))
        assert await store.count(EVERYTHING) == 0
        await store.close()

    asyncio.run(main())


def test_a_copy_of_the_database_is_another_one_with_whatever_host_name(database: str) -> None:
    server = shared_server()

    async def main() -> None:
        store = PostgresStore(database, migrate=True)
        await store.migrate()
        await store.close()
        copy = server.fresh_database(database.rsplit("/", 1)[1])
        try:
            async with psycopg_async(server.url_of(copy)) as connection:
                with pytest.raises(WrongDatabase):
                    await store.enqueue_on(connection, _jobs())
            async with psycopg_async(database.replace("127.0.0.1", "localhost")) as connection:
                assert len(await store.enqueue_on(connection, _jobs())) == 5
            await store.close()
        finally:
            server.drop_database(copy)

    asyncio.run(main())


def test_missing_tables_and_wrong_things_are_said(url: str, database: str) -> None:
    async def main() -> None:
        bare = PostgresStore(database)
        async with psycopg_async(database) as connection:
            with pytest.raises(SchemaMissing, match="treadle migrate"):
                await bare.enqueue_on(connection, _jobs())
        await bare.close()
        store = PostgresStore(url)
        for wrong in (None, "a string", 7, object()):
            with pytest.raises(InvalidArgument, match="psycopg, asyncpg or SQLAlchemy"):
                await store.enqueue_on(wrong, _jobs())
        async with psycopg_async(_plain(url)) as connection:
            with pytest.raises(InvalidArgument, match="not an async one"):
                store.enqueue_on_sync(connection, _jobs())
            assert await store.enqueue_on(connection, []) == []
        engine = alchemy.create_async_engine("sqlite+aiosqlite://")
        async with alchemy.AsyncSession(engine) as session:
            with pytest.raises(WrongDatabase, match="sqlite"):
                await store.enqueue_on(session, _jobs())
        await engine.dispose()
        async with psycopg_async(_plain(url)) as connection:
            with contextlib.suppress(psycopg.Error):
                await connection.execute("select 1/0")
            with pytest.raises(TreadleError, match="transaction is aborted"):
                await store.enqueue_on(connection, _jobs())
        await store.close()

    asyncio.run(main())


def test_migrate_true_makes_the_tables_at_the_first_use_on_a_connection(database: str) -> None:
    store = PostgresStore(database, migrate=True)
    with psycopg.connect(database) as connection:
        assert store.enqueue_on_sync(connection, _jobs())[0].created
    assert asyncio.run(store.count(EVERYTHING)) == 4
    asyncio.run(store.close())


def test_a_key_in_an_open_transaction_is_waited_for(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url)
        key = Key("dedupe", "k")
        for undo in (True, False):
            async with await psycopg.AsyncConnection.connect(_plain(url)) as own:
                await store.enqueue_on(own, [NewJob(uuid7(1), "job", key=key)])
                other = asyncio.create_task(store.enqueue([NewJob(uuid7(2), "job", key=key)]))
                done, _ = await asyncio.wait([other], timeout=0.2)
                assert not done
                await (own.rollback() if undo else own.commit())
            [answer] = await other
            assert (answer.created, answer.id) == ((True, uuid7(2)) if undo else (False, uuid7(1)))
            await store.delete(EVERYTHING)
        await store.close()

    asyncio.run(main())
