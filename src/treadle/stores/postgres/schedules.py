"""What keeps cron schedules (ScheduleStore, T5 to T14)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

from treadle.core.clock import from_micros
from treadle.core.job import Enqueued
from treadle.core.schedule import Schedule
from treadle.core.store import REWOUND, DueSchedules, Firing
from treadle.stores.postgres import rows
from treadle.stores.postgres.moving import stored
from treadle.stores.postgres.part import Part
from treadle.stores.postgres.session import Session
from treadle.stores.postgres.templates import job_of, text_of

_Read: TypeAlias = tuple[str, int, datetime | None]  # name, revision and next run of a schedule


class Schedules(Part):
    """Schedules by name, fired in one step with their jobs."""

    async def put_schedule(self, schedule: Schedule, *, expect: int | None = None) -> Schedule | None:
        """Store the schedule if the revision `expect` is there; see `ScheduleStore.put_schedule` (T9)."""
        values = (
            schedule.name,
            schedule.expression,
            schedule.tz,
            schedule.seconds,
            text_of(schedule.job),
            schedule.next_at,
            schedule.last_at,
            schedule.paused,
        )
        if expect:
            found = await self._write("swap_schedule", *values, expect)
        else:
            found = await self._write("put_schedule", *values, expect == 0)
        return _schedule(found[0]) if found else None

    async def get_schedule(self, name: str) -> Schedule | None:
        """The schedule of that name."""
        found = await self._read("get_schedule", name) if rows.possible([name]) else []
        return _schedule(found[0]) if found else None

    async def list_schedules(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> list[Schedule]:
        """Schedules by name, in code-point order."""
        if not rows.possible([prefix]):
            return []
        beyond = rows.beyond(prefix)
        found = await self._read("list_schedules", prefix, rows.storable(after), beyond, max(limit, 0))
        return [_schedule(row) for row in found]

    async def delete_schedule(self, name: str) -> bool:
        """Delete the schedule; whether it was there."""
        return bool(rows.possible([name]) and await self._write("delete_schedule", name))

    async def due_schedules(self, limit: int, *, now: datetime | None = None) -> DueSchedules:
        """What is due and not paused, through an index; see `ScheduleStore.due_schedules`."""
        most = max(limit, 0)
        found = await self._read("due_schedules", now, most + 1, REWOUND)
        at, next_in = found[0][:2]
        due = [_schedule(row[2:]) for row in found if row[2] is not None]
        return DueSchedules(from_micros(at), due[:most], 0.0 if len(due) > most else next_in)

    async def fire(self, firings: Sequence[Firing], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Advance each schedule and enqueue its job, in one transaction; see `ScheduleStore.fire` (T11, T12)."""
        by_read: dict[_Read, Firing] = {}
        for firing in firings:
            by_read.setdefault(_read(firing), firing)
        if not by_read:
            return []

        async def work(session: Session, repeated: bool) -> dict[_Read, Enqueued]:
            async with session.transaction():
                fired = await advance(session)
            if repeated and len(fired) < len(by_read):
                before = {firing.job.id: read for read, firing in by_read.items() if read not in fired}
                for row in await session.fetch("get", list(before)):
                    job = rows.job(row)  # under an id that is the firing's own, so the try whose answer was lost stored it
                    fired[before[job.id]] = Enqueued(job.id, True, job)
            return fired

        async def advance(session: Session) -> dict[_Read, Enqueued]:
            locked = await session.fetch(
                "lock_schedules",
                now,
                [name for name, _, _ in by_read],
                [revision for _, revision, _ in by_read],
                [next_at for _, _, next_at in by_read],
                patient=True,
            )
            if not locked:
                return {}
            at = from_micros(locked[0][3])
            fitting = [(name, revision, _moment(next_at)) for name, revision, next_at, _ in locked]
            due = [by_read[read] for read in fitting]
            answers = await stored(session, [firing.job for firing in due], at)
            await session.fetch(
                "advance_schedules",
                [firing.schedule.name for firing in due],
                [firing.next_at for firing in due],
                [at if answer.created else None for answer in answers],
            )
            return dict(zip(fitting, answers, strict=True))

        fired = await self._runner.run(work, again=True)
        if any(answer.created for answer in fired.values()):
            self._arrived()
        return [fired.pop(_read(firing), None) for firing in firings]  # the first of those read alike has fired


def _read(firing: Firing) -> _Read:
    return firing.schedule.name, firing.schedule.revision, firing.schedule.next_at


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _schedule(row: rows.Row) -> Schedule:
    name, expression, tz, seconds, template, next_at, last_at, paused, revision = row
    return Schedule(
        name=name,
        expression=expression,
        tz=tz,
        seconds=seconds,
        job=job_of(template),
        next_at=_moment(next_at),
        last_at=_moment(last_at),
        paused=paused,
        revision=revision,
    )
