"""A fleet of worker processes on each store that several processes can share."""

import pytest
from fleet import Fleet


@pytest.fixture(params=["sqlite"])
def fleet(request, tmp_path):
    fleet = Fleet(f"sqlite:{tmp_path}/jobs.db", tmp_path)
    yield fleet
    fleet.close()
