"""Ids are UUIDv7 and sort by creation (E1)."""

import os
import uuid

import pytest

from treadle.engine.ids import new_id


def test_ids_are_uuids_of_version_7_that_carry_the_time():
    made = uuid.UUID(new_id(1_700_000_000_123))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert str(made) == str(made).lower()


def test_ids_of_one_process_sort_by_creation_though_the_clock_stands_or_goes_back():
    far = 4_000_000_000_000
    ids = [new_id(ms) for ms in (far, far, far - 5000, far + 1, far, 1000) for _ in range(2000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking is the point
def test_a_child_of_a_fork_makes_other_ids():
    read, write = os.pipe()
    far = 5_000_000_000_000
    if os.fork() == 0:
        os.write(write, new_id(far).encode())
        os._exit(0)
    os.wait()
    os.close(write)
    with os.fdopen(read) as end:
        assert end.read() != new_id(far)
