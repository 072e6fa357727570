"""What the tests of moving share: places of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from places import places
from tests.servers import postgres


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Gives the URL of a new, empty place of that kind."""
    found = places(tmp_path)
    made: list[str] = []

    def one(kind: str) -> str:
        made.append(found[kind]())
        return made[-1]

    yield one
    for url in made:
        if url.startswith("postgres"):
            with postgres.shared_server().connect() as connection:
                connection.execute(f"drop schema if exists {url.rpartition('=')[2]} cascade".encode())
