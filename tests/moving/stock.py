"""A store full of every kind of thing, and everything in a store as values that can be compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from treadle.core.cron import Cron
from treadle.core.filter import EVERYTHING
from treadle.core.job import Job
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.schedule import Interval, Schedule
from treadle.core.store import Ending
from treadle.core.transfer import Movable
from treadle.testing import JobFactory


async def stock(store: Movable) -> JobFactory:
    """Fill it, through the operations that programs use."""
    make = JobFactory(store)
    await make.pending("plain", {"ключ": ["😀", 1.5, None, 2**70]})
    await make.pending("later", [1], delay=86_400.5, priority=-7, queue="slow", max_attempts=3)
    await make.pending("once", "x" * 100_000, dedupe_key="once:1")
    await make.pending("ever", None, idempotency_key="ever:1")
    await make.pending("face", 1, queue="functions")
    for outcome in (RetryAfter(30.0, "ValueError: first"), RetryAfter(7200.0, "KeyError: 'ü'\nsecond"), None):
        job = next((one for one in await store.find(EVERYTHING, limit=99) if one.name == "failing"), None)
        job = job or await make.pending("failing", {"n": 1}, idempotency_key="failing:1", max_attempts=9)
        make.clock.advance(60.0)
        if outcome is not None:
            await make.ended(await make.claimed(job), outcome)
    await make.ended(await make.running("given-back", 1), Released(3.25, interrupted=True))
    await make.dead("dead", {"a": {}}, dedupe_key="free")
    await make.dead("dead", 2, idempotency_key="kept", queue="slow")
    await make.ended(await make.running("told", 3, idempotency_key="told:1"), Done("200 OK"))
    await make.done("told", 4, idempotency_key="told:2")
    for number in range(3):
        await make.done("behind", number)
    await store.ensure([(Interval.of(15.5, replace(make.new("tick", {"every": 1}), id="")), make.id())], now=make.clock.now())
    ended = await make.claimed(next(one for one in await store.find(EVERYTHING, limit=1)))
    following = Interval.of(15.5, replace(make.new("tick", {"every": 1}), id="")).copy(make.id(), 15.5)
    await store.finish([Ending(ended.claim, Dead("gone"), following)], now=make.clock.now())
    for name, zone in (("nightly", "Europe/Berlin"), ("plugin:x/hourly", "UTC")):
        cron = Schedule.of(name, Cron("*/5 3 * * *", zone), make.new("report", {"of": name}, priority=4, max_attempts=2))
        await store.put_schedule(replace(cron, next_at=make.clock.now(), last_at=make.clock.now(), paused=name == "nightly"))
    await store.put_schedule(replace(await _first(store), next_at=None))
    for namespace in ("settings", "settings:2", "ü"):
        for key in ("a", "b/c", "ü"):
            await store.put_document(namespace, key, {"key": key}, now=make.clock.now())
    await store.put_document("settings", "a", [None, True, 1e10], now=make.clock.now())
    await store.put_document("sessions", "s", "secret", expires_in=10.0**9, now=make.clock.now())
    return make


async def _first(store: Movable) -> Schedule:
    return (await store.list_schedules())[0]


async def contents(store: Movable) -> dict[str, Any]:
    """Everything that moves, by kind; templates without the ids that some stores keep."""
    jobs = await store.find(EVERYTHING, limit=100_000)
    return {
        "jobs": {job.id: _plain(job) for job in jobs if job.state != "done" or job.idempotency_key is not None},
        "intervals": await store.kept_intervals(limit=10_000),
        "schedules": [replace(one, job=replace(one.job, id="")) for one in await store.list_schedules(limit=10_000)],
        "documents": await store.kept_documents(limit=10_000),
    }


def _plain(job: Job) -> Job:
    return replace(job, failures=tuple(job.failures))
