"""The store decides what time it is: workers whose clocks are ten minutes off, in either direction (S9)."""

import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytestmark = [pytest.mark.timeout(120), pytest.mark.slow]
SECOND = timedelta(seconds=1)


def faked_time() -> str:
    """The library that shifts a process's clock; installed from the system's packages where that may be done."""
    found = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        for command in ("update", "-q"), ("install", "-y", "-q", "faketime"):
            subprocess.run(["apt-get", *command], capture_output=True, check=False)
        found = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
    if found is None:
        pytest.skip("libfaketime is not installed and cannot be: a process's clock cannot be shifted here")
    return str(found)


@pytest.fixture
def fleet(served):
    return served


@pytest.mark.parametrize("skew", ["+10m", "-10m"])
def test_a_worker_whose_clock_is_off_runs_delayed_jobs_on_time_and_keeps_its_leases(fleet, skew):
    worker = fleet.worker(LD_PRELOAD=faked_time(), FAKETIME=skew, DONT_FAKE_MONOTONIC="1", LEASE="2", CONCURRENCY="1")
    straight = fleet.worker(LEASE="2", CONCURRENCY="1")
    delayed = [fleet.tasks.sync.enqueue("quick", 1, delay=delay).id for delay in (1, 2)]
    held = [fleet.tasks.sync.enqueue("waits").id for _ in range(2)]
    fleet.started(2)
    assert {line.pid for line in fleet.lines()} == {worker.pid, straight.pid}
    fleet.until(lambda: datetime.now(UTC) > fleet.job(held[1]).created_at + 5 * SECOND, "more than two leases have passed")
    assert [fleet.job(id).attempts for id in held] == [1, 1]  # neither took the other's job for expired
    fleet.go()
    fleet.all_finished()
    for id in (*delayed, *held):
        job = fleet.job(id)
        assert (job.state, job.attempts) == ("done", 1)
        assert job.run_at <= job.started_at <= datetime.now(UTC)
        assert job.started_at <= job.finished_at <= datetime.now(UTC)
    straight.signal(15)
    straight.ended()
    last = fleet.tasks.sync.enqueue("quick", 1, delay=1)
    fleet.until(lambda: fleet.job(last.id).state == "done", "the worker with the odd clock runs it")
    job = fleet.job(last.id)
    assert job.run_at <= job.started_at < job.run_at + 2 * SECOND


@pytest.mark.parametrize("skew", ["+10m", "-10m"])
def test_a_worker_whose_clock_is_off_that_is_frozen_loses_its_job_to_another(fleet, skew):
    """SIGSTOP past the lease, SIGCONT: the late result changes nothing, whatever the frozen worker's clock says."""
    frozen = fleet.worker(LD_PRELOAD=faked_time(), FAKETIME=skew, DONT_FAKE_MONOTONIC="1", LEASE="1")
    id = fleet.tasks.sync.enqueue("waits").id
    fleet.started()
    frozen.signal(19)
    fleet.worker(LEASE="1")
    fleet.started(2)
    fleet.go()
    fleet.all_finished()
    before = fleet.job(id)
    frozen.signal(18)
    fleet.until(lambda: len(fleet.lines("end")) == 2, "the frozen handler ends too")
    frozen.signal(15)
    frozen.ended()
    assert fleet.job(id) == before
    assert (before.state, before.attempts) == ("done", 2)
