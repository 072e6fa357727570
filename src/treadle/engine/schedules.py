"""Operations on stored schedules: create, list, pause, resume, run now, delete (T9, T13, T14)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from treadle.core.errors import Conflict, NotFound
from treadle.core.job import Enqueued, NewJob
from treadle.core.schedule import Schedule
from treadle.core.store import JobStore, ScheduleStore
from treadle.engine.clock import EngineClock
from treadle.engine.scheduler import next_after

if TYPE_CHECKING:
    from treadle.core.cron import Cron

PAGE = 500


class Schedules:
    """What can be done to the schedules of a store, while any number of schedulers fire them."""

    def __init__(
        self, store: ScheduleStore, jobs: JobStore, clock: EngineClock, new_id: Callable[[], str], changed: Callable[[], None]
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._clock = clock
        self._new_id = new_id
        self._changed = changed

    async def put(self, name: str, cron: Cron, job: NewJob) -> Schedule:
        """Create the schedule, or bring the stored one to this expression, zone and job.

        What is stored and means the same is left as it is. The next run is computed anew where the times change (T9);
        a paused schedule stays paused.
        """
        while True:
            wanted = Schedule.of(name, cron, job)
            current = await self._store.get_schedule(name)
            if current is None:
                wanted = replace(wanted, next_at=next_after(wanted, await self._now()))
            elif current.fires_like(wanted):
                return current
            elif current.due_like(wanted):
                wanted = replace(current, job=wanted.job)
            else:
                next_at = next_after(wanted, await self._now())
                wanted = replace(wanted, next_at=next_at, last_at=current.last_at, paused=current.paused)
            if (stored := await self._put(wanted, current)) is not None:
                return stored

    async def create(self, name: str, cron: Cron, job: NewJob) -> Schedule:
        """Create the schedule; raises `Conflict` if the name is in use."""
        wanted = Schedule.of(name, cron, job)
        wanted = replace(wanted, next_at=next_after(wanted, await self._now()))
        stored = await self._put(wanted, None)
        if stored is None:
            raise Conflict(f"the schedule {name!r} exists; delete it first, or choose another name")
        return stored

    async def get(self, name: str) -> Schedule:
        """The schedule; raises `NotFound`."""
        schedule = await self._store.get_schedule(name)
        if schedule is None:
            raise NotFound(f"there is no schedule {name!r}")
        return schedule

    async def iterate(self, prefix: str = "") -> AsyncIterator[Schedule]:
        """`list` for any number of schedules, read page by page."""
        after = ""
        while page := await self._store.list_schedules(prefix=prefix, after=after, limit=PAGE):
            for schedule in page:
                yield schedule
            after = page[-1].name

    async def list(self, prefix: str = "") -> list[Schedule]:
        """All schedules whose names begin with `prefix`, by name."""
        return [schedule async for schedule in self.iterate(prefix)]

    async def pause(self, name: str) -> Schedule:
        """Stop the schedule from firing; what is enqueued stays. Raises `NotFound`."""
        return await self._change(name, lambda schedule, now: replace(schedule, paused=True))

    async def resume(self, name: str) -> Schedule:
        """Let the schedule fire again, from its next time on: what passed meanwhile is not made up (T10). Raises `NotFound`."""
        return await self._change(
            name,
            lambda schedule, now: (
                replace(schedule, paused=False, next_at=next_after(schedule, now)) if schedule.paused else schedule
            ),
        )

    async def run_now(self, name: str) -> Enqueued:
        """Enqueue the schedule's job now, beside its times, also while it is paused; that is its last run then (T14).

        Raises `NotFound`, or `Conflict` while a firing is unfinished.
        """
        schedule = await self.get(name)
        enqueued = (await self._jobs.enqueue([schedule.firing(self._new_id())], now=self._clock.for_store()))[0]
        if not enqueued.created:
            raise Conflict(f"schedule {name!r} cannot be run now: its job {enqueued.id} is still {enqueued.job.state}")
        with suppress(NotFound):  # deleted meanwhile: then nobody asks for its last run any more
            await self._change(name, lambda schedule, now: replace(schedule, last_at=now))
        return enqueued

    async def delete(self, name: str) -> None:
        """Delete the schedule; its jobs stay. Raises `NotFound`."""
        if not await self._store.delete_schedule(name):
            raise NotFound(f"there is no schedule {name!r}")
        self._changed()

    async def _change(self, name: str, change: Callable[[Schedule, datetime], Schedule]) -> Schedule:
        while True:
            current = await self.get(name)
            changed = change(current, await self._now())
            if changed == current:
                return current
            if (stored := await self._put(changed, current)) is not None:
                return stored

    async def _put(self, schedule: Schedule, current: Schedule | None) -> Schedule | None:
        stored = await self._store.put_schedule(schedule, expect=0 if current is None else current.revision)
        self._changed()
        return stored

    async def _now(self) -> datetime:
        """The store's own time: a schedule must not fire at once because its creator's clock was behind (S9)."""
        return (await self._store.due_schedules(0, now=self._clock.for_store())).now
