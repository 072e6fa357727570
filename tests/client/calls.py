"""The documented calls, made of any service that runs: of `treadle serve` wherever it runs."""

import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.faces import Face, Functions

from treadle.client import ApiError, Job

PATIENCE = 30.0  # seconds for a worker to have run a job


def documented_calls(face: Face, url: str, key: str) -> None:
    """Every operation, once at least, with what it promises. Its functions do not exist, so that their jobs die.

    The service must have a worker. What else is in it does not matter, and stays, but for dead jobs, which are requeued.
    """
    own = uuid.uuid4().hex
    with face.open(url, key) as opened:
        _jobs(opened.functions, f"ghost-{own}", own)
        _dead(opened.functions, f"ghost-{own}")
        _cron(opened.functions, f"ghost-{own}", f"nightly-{own}")
        _refusals(opened.functions)
        assert opened.functions.invoke(f"ghost-{own}", "/a", payload={"b": 1}).status_code == 404
    with face.open(url, "no-such-key") as opened:
        assert refused(401, lambda: opened.functions.list_jobs())


def refused(status: int, call: Callable[[], Any]) -> ApiError:
    with pytest.raises(ApiError) as raised:
        call()
    assert raised.value.status == status, raised.value
    assert raised.value.code
    assert raised.value.message
    return raised.value


def _jobs(functions: Functions, ghost: str, own: str) -> None:
    payload = {"month": "2026-10", "items": [1, 2.5, None, True, "\u00fc\x00\U0001f600"], "a": {"z": {}, "b": []}}
    job: Job = functions.enqueue_job(ghost, payload, delay_secs=3600)
    assert (job.function, job.status, job.attempts, job.max_attempts) == (ghost, "pending", 0, 3)
    assert (job.error, job.started_at, job.completed_at, job.response_status) == (None, None, None, None)
    assert job.payload == payload
    assert [*job.payload] == [*payload], "in the order given"
    assert functions.get_job(job.id) == job

    last: Job = functions.enqueue_job(ghost, None, 1800.5, max_attempts=7)
    assert (last.payload, last.max_attempts) == (None, 7)
    assert functions.list_jobs()[:2] == [last, job], "newest first"
    assert functions.list_jobs("pending", 1) == [last]
    assert last not in functions.list_jobs(status="completed", limit=500)

    first = functions.enqueue_job(ghost, 1, 3600, idempotency_key=f"key {own}")
    assert functions.enqueue_job(ghost, 2, 7200, idempotency_key=f"key {own}") == first


def _dead(functions: Functions, ghost: str) -> None:
    job: Job = functions.enqueue_job(ghost, max_attempts=1)
    dead = _when_dead(functions, job.id, attempts=1)
    assert dead.error == f"Function '{ghost}' not found"
    assert dead.response_status is None
    assert dead in functions.list_dead()
    assert dead in functions.list_dead(limit=500)
    assert functions.retry_job(job.id).id == job.id
    assert _when_dead(functions, job.id, attempts=2).error == f"Function '{ghost}' not found"
    assert functions.requeue_dead().requeued >= 1
    _when_dead(functions, job.id, attempts=3)


def _when_dead(functions: Functions, id: str, attempts: int) -> Job:
    until = time.monotonic() + PATIENCE
    while True:
        job: Job = functions.get_job(id)
        if (job.status, job.attempts) == ("dead", attempts):
            return job
        assert time.monotonic() < until, job


def _cron(functions: Functions, ghost: str, name: str) -> None:
    entry = functions.create_cron_job(name, "0 3 * * *", ghost, {"dry_run": False})
    assert (entry.name, entry.schedule, entry.function) == (name, "0 0 3 * * *", ghost)
    assert (entry.payload, entry.last_run, entry.next_run) == ({"dry_run": False}, None, None)
    assert entry in functions.list_cron_jobs()
    refused(409, lambda: functions.create_cron_job(name, "0 4 * * *", ghost))
    assert functions.delete_cron_job(name) is None
    assert entry not in functions.list_cron_jobs()
    refused(404, lambda: functions.delete_cron_job(name))
    refused(400, lambda: functions.create_cron_job(name, "@daily", ghost))


def _refusals(functions: Functions) -> None:
    refused(404, lambda: functions.get_job(str(uuid.uuid4())))
    refused(404, lambda: functions.get_job("no-such-id?limit=1"))
    refused(404, lambda: functions.retry_job(str(uuid.uuid4())))
    pending = functions.enqueue_job("ghost", delay_secs=3600)
    refused(409, lambda: functions.retry_job(pending.id))
    refused(400, lambda: functions.enqueue_job("No Name"))
    refused(400, lambda: functions.enqueue_job("ghost", delay_secs=-1))
    refused(400, lambda: functions.enqueue_job("ghost", delay_secs=2_592_001))
    refused(400, lambda: functions.enqueue_job("ghost", max_attempts=0))
    refused(400, lambda: functions.enqueue_job("ghost", max_attempts=101))
    refused(413, lambda: functions.enqueue_job("ghost", "x" * 5_000_000, 3600))
    refused(400, lambda: functions.list_jobs("failed"))
    refused(400, lambda: functions.list_jobs(limit=0))
    refused(400, lambda: functions.list_dead(limit=501))
