"""The store contract, on the Postgres that comes with a package, and on the system's Postgres 15 where it is installed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from tests.servers.postgres import PostgresServer, shared_server, system_is_installed, system_server

from treadle.stores.postgres import PostgresStore
from treadle.stores.postgres.migrating import migrate
from treadle.stores.postgres.settings import settings
from treadle.testing import store_contract, tasks_contract


def _migrated(url: str, schema: str) -> None:
    migrate(settings(url, {"schema": schema}))


def _fresh(server: Callable[[], PostgresServer]) -> Callable[[], AsyncIterator[PostgresStore]]:
    async def store() -> AsyncIterator[PostgresStore]:
        with server().schema(_migrated) as schema:
            yield PostgresStore(server().url, schema=schema)

    return store


TestPostgres = store_contract("postgres", _fresh(shared_server))
TestPostgres15 = store_contract(
    "postgres15", _fresh(system_server), skip=None if system_is_installed() else "this system has no Postgres 15 installed"
)
TestTasksOnPostgres = tasks_contract("tasks on postgres", _fresh(shared_server))
