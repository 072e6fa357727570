"""What a move carries: one predicate for counting and for carrying, read in pages that memory can hold (S13)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from treadle.core.filter import JobFilter
from treadle.core.job import Job, State
from treadle.core.transfer import Cargo, Counts, Movable
from treadle.engine.operations import FIRST_PAGE, PAGE, PAGE_LOAD

KEPT_PAGE = 200

PENDING = JobFilter(states=frozenset({State.PENDING}))
DEAD = JobFilter(states=frozenset({State.DEAD}))
KEYED = JobFilter(states=frozenset({State.DONE}), keyed=True)
LEFT = JobFilter(states=frozenset({State.DONE}), keyed=False)
RUNNING = JobFilter(states=frozenset({State.RUNNING}))
MOVED = (PENDING, DEAD, KEYED)


async def counted(store: Movable) -> Counts:
    """How much there is that moves."""
    pending, dead, done = [await store.count(which) for which in MOVED]
    return replace(await store.kept(), pending=pending, dead=dead, done=done)


async def pages(store: Movable) -> AsyncIterator[Cargo]:
    """Everything that moves."""
    async for jobs in job_pages(store):
        yield Cargo(jobs=jobs)
    name = ""
    while intervals := await store.kept_intervals(after=name, limit=KEPT_PAGE):
        yield Cargo(intervals=intervals)
        name = intervals[-1].interval.schedule
    name = ""
    while schedules := await store.list_schedules(after=name, limit=KEPT_PAGE):
        yield Cargo(schedules=schedules)
        name = schedules[-1].name
    place: tuple[str, str] | None = None
    while documents := await store.kept_documents(after=place, limit=KEPT_PAGE):
        yield Cargo(documents=documents)
        place = (documents[-1].namespace, documents[-1].document.key)


async def job_pages(store: Movable) -> AsyncIterator[Sequence[Job]]:
    """The jobs that move, with their failures."""
    for which in MOVED:
        before: str | None = None
        most = FIRST_PAGE
        while jobs := await store.find(which, limit=most, before=before):
            yield jobs
            before = jobs[-1].id
            load = sum(map(_load, jobs)) / len(jobs)
            most = max(1, min(PAGE, int(PAGE_LOAD / max(load, 1.0))))


def size(cargo: Cargo) -> int:
    """How many things are in it."""
    return len(cargo.jobs) + len(cargo.intervals) + len(cargo.schedules) + len(cargo.documents)


def _load(job: Job) -> int:
    return len(job.payload_json) + sum(len(failure.error) for failure in job.failures)
