"""What is in the way of a move: things of the target that have the id, the key or the name of one that is to come (S13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from treadle.core.filter import EVERYTHING
from treadle.core.transfer import Movable
from treadle.engine.cargo import KEPT_PAGE, job_pages

KNOWN = 100


@dataclass(slots=True)
class Clashes:
    """How many there are, and the first of them in words."""

    number: int = 0
    known: list[str] = field(default_factory=list)

    def add(self, words: str) -> None:
        """Take note of one."""
        self.number += 1
        if len(self.known) < KNOWN:
            self.known.append(words)


async def clashes(source: Movable, target: Movable) -> Clashes:
    """All that is in the way. Intervals are not: the target's own stays, as it does when its application registers it."""
    found = Clashes()
    async for words in _of_jobs(source, target):
        found.add(words)
    async for words in _of_schedules(source, target):
        found.add(words)
    async for words in _of_documents(source, target):
        found.add(words)
    return found


async def _of_jobs(source: Movable, target: Movable) -> AsyncIterator[str]:
    if not await target.count(EVERYTHING):
        return
    async for jobs in job_pages(source):
        taken = await target.taken(jobs)
        for job in jobs:
            holder = taken.get(job.id)
            if holder == job.id:
                yield f"a job {job.id} ({job.name}) is there already"
            elif holder is not None and job.key is not None:
                yield f"the {job.key.kind} key {job.key.text!r} of job {job.id} ({job.name}) is held there by job {holder}"


async def _of_schedules(source: Movable, target: Movable) -> AsyncIterator[str]:
    if not (await target.kept()).schedules:
        return
    name = ""
    while page := await source.list_schedules(after=name, limit=KEPT_PAGE):
        for schedule in page:
            if await target.get_schedule(schedule.name) is not None:
                yield f"a schedule {schedule.name!r} is there already"
        name = page[-1].name


async def _of_documents(source: Movable, target: Movable) -> AsyncIterator[str]:
    if not (await target.kept()).documents:
        return
    place: tuple[str, str] | None = None
    while page := await source.kept_documents(after=place, limit=KEPT_PAGE):
        for kept in page:
            if await target.get_document(kept.namespace, kept.document.key) is not None:
                yield f"a document {kept.document.key!r} of {kept.namespace!r} is there already"
        place = (page[-1].namespace, page[-1].document.key)
