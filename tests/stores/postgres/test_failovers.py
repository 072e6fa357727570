"""What a failover leaves behind: connections that take no writes, and process ids that are others' now (S6)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import psycopg
import pytest
from tests.servers.postgres import shared_server

from treadle.core.errors import StoreError, StoreUnavailable
from treadle.core.job import NewJob
from treadle.core.store import Claim, Demand
from treadle.stores.postgres import PostgresStore, errors
from treadle.stores.postgres.session import Session
from treadle.testing.factory import uuid7


def _take_writes(database: str, whether: bool) -> None:
    with psycopg.connect(shared_server().url, autocommit=True) as connection:
        name = database.rsplit("/", 1)[1]
        connection.execute(f"alter database {name} set default_transaction_read_only = {'off' if whether else 'on'}".encode())


def test_connections_that_take_no_writes_are_not_kept(database: str) -> None:
    async def main() -> None:
        await PostgresStore(database).migrate()
        _take_writes(database, False)
        store = PostgresStore(database, pool_size=3)
        await asyncio.gather(*(store.stats() for _ in range(3)))  # several that lead to a server that takes no writes
        keeper = store.lease_keeper()
        with pytest.raises(StoreUnavailable):
            await store.enqueue([NewJob(uuid7(1), "job")])
        with pytest.raises(StoreUnavailable):
            await asyncio.to_thread(keeper.renew, [Claim(uuid7(1), "t")], 60.0)
        await asyncio.gather(*(store.stats() for _ in range(3)))
        _take_writes(database, True)
        [answer] = await store.enqueue([NewJob(uuid7(1), "job")])
        assert answer.created, "a call that may be repeated is repeated on a new connection"
        claimed = await store.claim("t", [Demand(1)], worker="w", lease=60.0)
        assert len(claimed.jobs) == 1, "and no old one is left for one that may not"
        assert await asyncio.to_thread(keeper.renew, [Claim(uuid7(1), "t")], 60.0) == {Claim(uuid7(1), "t")}
        keeper.close()
        await store.close()

    asyncio.run(main())


def test_only_the_process_that_a_lost_connection_had_is_ended(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url, listen=False)

        async def work(session: Session, _: bool) -> tuple[int, datetime | None]:
            return session.process, session.started

        async def end(session: Session, _: bool) -> list[object]:
            return list(await session.fetch("end_backend", process, moment))

        process, started = await store._runner.run(work, again=False)
        assert started is not None
        ender = PostgresStore(url, listen=False)
        moment = datetime(2020, 1, 1, tzinfo=UTC)  # as if its id had been that of a process of another server
        assert await ender._runner.run(end, again=False) == []
        assert await store._runner.run(work, again=False) == (process, started), "it is alive"
        moment = started
        assert len(await ender._runner.run(end, again=False)) == 1
        await ender.close()
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", [psycopg.errors.IoError, psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted])
def test_damage_is_no_lack_of_room_nor_a_moments_trouble(kind: type[psycopg.Error]) -> None:
    error = errors.mapped(kind("could not read block 1"), "treadle")
    assert type(error) is StoreError
    assert "the server's log" in str(error)
