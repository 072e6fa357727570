"""Migrations: from many processes at once, from older tables with jobs in them, and refused where they are newer (S4)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from importlib.resources import files

import psycopg
import pytest

from treadle.core.errors import SchemaMissing, SchemaTooNew, StoreError, StoreUnavailable
from treadle.core.filter import EVERYTHING
from treadle.core.job import NewJob
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.postgres import PostgresStore
from treadle.stores.postgres.migrating import LATEST, migrate, migrations
from treadle.stores.postgres.settings import settings
from treadle.testing.factory import uuid7

_CATALOG = """
select 'column' as kind, c.relname, a.attnum::text, concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
    case when a.attnotnull then 'not null' end, co.collname, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind = 'r'
left join pg_collation co on co.oid = a.attcollation left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'treadle'::regnamespace and a.attnum > 0 and not a.attisdropped
union all select 'index', tablename, indexname, indexdef from pg_indexes where schemaname = 'treadle'
union all select 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
    where connamespace = 'treadle'::regnamespace and contype <> 'n'
union all select 'options', relname, '', coalesce(array_to_string(reloptions, ' '), '') from pg_class
    where relnamespace = 'treadle'::regnamespace and relkind = 'r'
order by 1, 2, 3, 4
"""


def _catalog(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(_CATALOG).fetchall()


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _, _ in migrations()] == list(range(1, LATEST + 1))


def test_schema_sql_says_what_the_migrations_make(database: str) -> None:
    migrate(settings(database, {}))
    made = _catalog(database)
    with psycopg.connect(database) as connection:
        connection.execute("drop schema treadle cascade")
        connection.execute(files("treadle.stores.postgres").joinpath("schema.sql").read_text().encode())
    assert _catalog(database) == made
    assert len(made) > 40


def test_eight_processes_migrate_at_once(database: str) -> None:
    program = (
        "import sys\nfrom treadle.stores.postgres.migrating import migrate\n"
        "from treadle.stores.postgres.settings import settings\n"
        "print(migrate(settings(sys.argv[1], {})))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, database], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    answers = [process.communicate(timeout=60) for process in processes]
    assert [errors for _, errors in answers] == [""] * 8
    assert sorted(words.split()[0] for words, _ in answers) == ["Applied"] + ["The"] * 7


def test_many_stores_migrate_at_their_first_use(database: str) -> None:
    async def main() -> None:
        stores = [PostgresStore(database, migrate=True) for _ in range(6)]
        await asyncio.gather(*(store.enqueue([NewJob(uuid7(number), "job")]) for number, store in enumerate(stores)))
        assert await stores[0].count(EVERYTHING) == 6
        assert "up to date" in await stores[0].migrate()
        for store in stores:
            await store.close()

    asyncio.run(main())


def test_older_tables_are_upgraded_with_live_jobs_in_them(database: str) -> None:
    async def main() -> None:
        assert migrate(settings(database, {}), upto=1).startswith("Applied 0001_jobs")
        old = PostgresStore(database)
        old._runner._checked = True  # as the code of that time would have it
        await old.enqueue([NewJob(uuid7(number), "job", str(number)) for number in range(3)])
        claimed = await old.claim("t", [Demand(1)], worker="w", lease=600.0)
        new = PostgresStore(database)
        with pytest.raises(SchemaMissing, match=r"at version 1.*needs \d+.*treadle migrate"):
            await new.count(EVERYTHING)
        assert (await new.migrate()).startswith("Applied 0002_intervals, 0003_documents, 0004_schedules, 0005_moves")
        stats = await new.stats()
        assert (stats.pending, stats.running) == (2, 1)
        claim = Claim(claimed.jobs[0].id, "t")
        assert await old.finish([Ending(claim, Done())]) == {claim}, "a worker of before the upgrade ends its job"
        await old.close()
        await new.close()

    asyncio.run(main())


def test_newer_tables_are_refused(database: str) -> None:
    async def main() -> None:
        migrate(settings(database, {}))
        with psycopg.connect(database) as connection:
            connection.execute("insert into treadle.migrations (version, name) values (9999, 'of tomorrow')")
        for store in (PostgresStore(database), PostgresStore(database, migrate=True)):
            with pytest.raises(SchemaTooNew, match=r"version 9999.*upgrade treadle"):
                await store.count(EVERYTHING)
            with pytest.raises(SchemaTooNew, match="version 9999"):
                await store.migrate()
            await store.close()

    asyncio.run(main())


def test_missing_tables_say_what_to_do(database: str) -> None:
    async def main() -> None:
        store = PostgresStore(database)
        with pytest.raises(SchemaMissing, match=r"treadle migrate.*migrate=True"):
            await store.enqueue([NewJob(uuid7(1), "job")])
        await store.migrate()
        assert (await store.enqueue([NewJob(uuid7(1), "job")]))[0].created
        with psycopg.connect(database) as connection:
            connection.execute("drop schema treadle cascade")
        with pytest.raises(SchemaMissing):
            await store.stats()
        await store.close()

    asyncio.run(main())


def test_a_role_that_may_only_use_its_schema_can_migrate(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create role poor login")
        try:
            connection.execute("create schema treadle authorization poor")
            migrate(settings(database.replace("postgres@", "poor@"), {}))
        finally:
            connection.execute("drop schema treadle cascade")
            connection.execute("drop role poor")


def test_a_database_that_cannot_hold_every_text_is_refused(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create database latin template template0 encoding 'LATIN1' locale 'C'")
        try:
            with pytest.raises(StoreError, match=r"LATIN1.*UTF8"):
                migrate(settings(database.rsplit("/", 1)[0] + "/latin", {}))
        finally:
            connection.execute("drop database latin")


def test_no_server_is_one_clear_line_without_the_password() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        migrate(settings("postgresql://ada:secret@127.0.0.1:1/x", {}))
    assert "127.0.0.1:1/x" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
