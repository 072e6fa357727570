"""What the tests of the Postgres store share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.servers.postgres import shared_server

from treadle.stores.postgres.migrating import migrate
from treadle.stores.postgres.settings import settings


def _migrated(url: str, schema: str) -> None:
    migrate(settings(url, {"schema": schema}))


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of an empty store of the shared server, in a schema of its own."""
    server = shared_server()
    with server.schema(_migrated) as schema:
        yield f"{server.url}?schema={schema}"


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of an empty database without tables."""
    server = shared_server()
    name = server.fresh_database()
    yield server.url_of(name)
    server.drop_database(name)
