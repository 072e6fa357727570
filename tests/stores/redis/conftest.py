"""What the tests of the Redis store share."""

from __future__ import annotations

import pytest
from tests.servers import valkey


@pytest.fixture
def server() -> valkey.ValkeyServer:
    """The server of this test process."""
    return valkey.shared()


@pytest.fixture
def prefix(server: valkey.ValkeyServer) -> str:
    """A prefix that no store has had."""
    return server.fresh_prefix()
