"""A folder of functions for each test, of whose processes none may be left."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.functions.hosting.grounds import Grounds


@pytest.fixture
def grounds(tmp_path: Path) -> Iterator[Grounds]:
    before = set(psutil.Process().children())  # servers that other tests share
    made = Grounds(tmp_path)
    yield made
    left = made.processes()
    for process in left:
        process.kill()
    assert left == [], "processes of functions outlived the test"
    assert set(psutil.Process().children()) <= before, "a child was left, or never reaped"
