"""A fleet of worker processes on each store that several processes can share."""

import pytest
from fleet import Fleet
from tests.servers import postgres, valkey


@pytest.fixture(params=["sqlite", "postgres", "valkey"])
def fleet(request, tmp_path):
    match request.param:
        case "sqlite":
            url = f"sqlite:{tmp_path}/jobs.db"
        case "postgres":
            server = postgres.shared_server()
            url = server.url_of(server.fresh_database())
        case "valkey":
            server = valkey.shared()
            url = f"{server.url}?prefix={server.fresh_prefix()}"
    fleet = Fleet(url, tmp_path)
    yield fleet
    fleet.close()


@pytest.fixture(params=["postgres", "valkey"])
def served(request, tmp_path):
    """A fleet on a server of its own, which the test may kill; on Valkey each write is on disk before it is answered."""
    if request.param == "postgres":
        server = postgres.PostgresServer(postgres.bundled_binaries())
        url = server.url_of(server.fresh_database())
    else:
        server = valkey.ValkeyServer(settings={"appendonly": "yes", "appendfsync": "always"})
        url = server.url
    fleet = Fleet(url, tmp_path)
    fleet.server = server
    yield fleet
    fleet.close()
    server.close()
