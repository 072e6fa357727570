"""What the tests of the client share."""

from collections.abc import Iterator

import pytest
from tests.client.faces import FACES, Face
from tests.client.server import Server, serving


@pytest.fixture(params=FACES, ids=str)
def face(request: pytest.FixtureRequest) -> Face:
    """Each face in turn."""
    return request.param


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that listens, and answers `{"data": null}` unless it is told otherwise."""
    with serving() as server:
        yield server
