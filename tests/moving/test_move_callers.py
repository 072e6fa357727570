"""A caller's own transaction meets the fence too: what it stores is moved, or it is told (E10, S13)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import psycopg
import pytest
from places import move
from stock import stock
from tests.servers import postgres

from treadle import StoreError, StoreMoved
from treadle.core.filter import EVERYTHING
from treadle.core.job import Key, NewJob
from treadle.stores.memory import MemoryStore
from treadle.stores.postgres import PostgresStore
from treadle.stores.sqlite import SQLiteStore


def new(id: str) -> NewJob:
    return NewJob(id, "mine", key=Key("idempotency", id))


@pytest.mark.parametrize("isolation", ["DEFERRED", "IMMEDIATE", None])
def test_on_sqlite_no_transaction_slips_past_the_mark(tmp_path, isolation):
    async def main():
        store, target = SQLiteStore(tmp_path / "a.db"), MemoryStore()
        await stock(store)
        with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=isolation, timeout=0.1)) as connection:
            await store.enqueue_on(connection, [new("before")])
            connection.commit()
            if isolation == "DEFERRED":
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM treadle_jobs").fetchall()  # sees the store as it was
            await move(store, target).run()
            with pytest.raises(StoreError) as refused:
                await store.enqueue_on(connection, [new("after")])
            assert isinstance(refused.value, StoreMoved) or isolation == "DEFERRED"
            connection.rollback()
            with pytest.raises(StoreMoved, match="was moved to target"):
                await store.enqueue_on(connection, [new("after")])
            connection.commit()  # a caller who commits all the same has stored nothing
        ids = {job.id for job in await target.find(EVERYTHING, limit=99)}
        assert "before" in ids and "after" not in ids
        assert "after" not in {job.id for job in await store.find(EVERYTHING, limit=99)}
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("isolation", list(psycopg.IsolationLevel))
def test_on_postgres_no_transaction_slips_past_the_mark(isolation):
    async def main():
        server = postgres.shared_server()
        with server.schema() as schema:
            store, target = PostgresStore(server.url, schema=schema, migrate=True), MemoryStore()
            await stock(store)
            with psycopg.connect(server.url) as connection:
                connection.isolation_level = isolation
                connection.execute(f"select count(*) from {schema}.schedules".encode())  # its snapshot is of before
                await move(store, target).run()
                with pytest.raises(StoreMoved, match="was moved to target"):
                    await store.enqueue_on(connection, [new("after")])
                connection.rollback()
            assert "after" not in {job.id for job in await store.find(EVERYTHING, limit=99)}
            await store.close()

    asyncio.run(main())


def test_on_postgres_a_transaction_that_stays_open_fails_the_mark_and_nothing_else(monkeypatch):
    async def main():
        from treadle.stores.postgres import end_of_move

        monkeypatch.setattr(end_of_move, "PATIENCE", "200ms")
        server = postgres.shared_server()
        with server.schema() as schema:
            store, target = PostgresStore(server.url, schema=schema, migrate=True), MemoryStore()
            await stock(store)
            with psycopg.connect(server.url) as connection:
                await store.enqueue_on(connection, [new("open")])
                with pytest.raises(StoreError, match="lock timeout"):
                    await move(store, target).run()
                assert await store.get_mark() is None
                await store.enqueue([new("beside")])
            report = await move(store, target).run()
            assert report.target == report.source
            assert {"open", "beside"} <= {job.id for job in await target.find(EVERYTHING, limit=99)}
            await store.close()

    asyncio.run(main())
