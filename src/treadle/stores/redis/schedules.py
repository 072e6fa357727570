"""Cron schedules: by name, and fired in one step with their jobs (T5 to T14)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from treadle.core.job import Enqueued
from treadle.core.schedule import Schedule
from treadle.core.store import REWOUND, DueSchedules, Firing
from treadle.stores.redis import record, wire
from treadle.stores.redis.link import Link
from treadle.stores.redis.moment import at, moment, present, span, surely_at
from treadle.stores.redis.pieces import pieces
from treadle.stores.redis.template import job_of, template_of

AT_ONCE = 200


class Schedules:
    """The part of the store that keeps cron schedules."""

    _link: Link

    async def put_schedule(self, schedule: Schedule, *, expect: int | None = None) -> Schedule | None:
        """Store the schedule if the revision `expect` is there; see `ScheduleStore.put_schedule` (T9)."""
        stored = await self._link.call(
            "schedule_put",
            "",
            schedule.name,
            "" if expect is None else expect,
            optional(schedule.next_at),
            optional(schedule.last_at),
            int(schedule.paused),
            meaning(schedule),
        )
        return None if stored is None else _schedule(stored)

    async def get_schedule(self, name: str) -> Schedule | None:
        """The schedule of that name."""
        found = await self._link.call("schedule_get", "", name)
        return None if found is None else _schedule(found)

    async def list_schedules(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> list[Schedule]:
        """Schedules by name, in code-point order."""
        found: list[Schedule] = []
        begin = wire.beginning(prefix, after)
        while len(found) < limit:
            most = min(AT_ONCE, limit - len(found))
            page = await self._link.call("schedule_list", "", prefix, begin, most)
            found += map(_schedule, page)
            if len(page) < most:
                break
            begin = f"({found[-1].name}"
        return found

    async def delete_schedule(self, name: str) -> bool:
        """Delete the schedule; whether it was there."""
        return bool(await self._link.call("schedule_delete", "", name))

    async def due_schedules(self, limit: int, *, now: datetime | None = None) -> DueSchedules:
        """What is due and not paused, through an index; see `ScheduleStore.due_schedules`."""
        most = max(limit, 0)
        there, due, rewound, wait = await self._link.call("schedule_due", present(now), span(REWOUND), most + 1)
        moment_now = surely_at(there)
        found = {schedule.name: schedule for schedule in map(_schedule, [*rewound, *due])}
        ordered = sorted(found.values(), key=lambda one: (min(one.next_at or moment_now, moment_now), one.name))
        next_in = 0.0 if len(ordered) > most else None if wait == "-1" else int(wait) / 1_000_000
        return DueSchedules(moment_now, ordered[:most], next_in)

    async def fire(self, firings: Sequence[Firing], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Advance each schedule and enqueue its job in one step; see `ScheduleStore.fire` (T11, T12)."""
        answers: list[Enqueued | None] = []
        for piece in pieces(firings, AT_ONCE, lambda firing: len(firing.job.payload_json)):
            arguments: list[wire.Argument] = [present(now), len(piece)]
            for firing in piece:
                read = firing.schedule
                arguments += (read.name, read.revision, optional(read.next_at), optional(firing.next_at))
                arguments += wire.new_jobs([firing.job])
            answers += record.placed(*await self._link.call("fire", *arguments))
        return answers


def meaning(schedule: Schedule) -> str:
    """What the schedule says, as it is stored."""
    return json.dumps([schedule.expression, schedule.tz, schedule.seconds, template_of(schedule.job)])


def optional(when: datetime | None) -> str:
    """The moment, or empty text for none."""
    return "" if when is None else moment(when)


def _schedule(found: Sequence[Any]) -> Schedule:
    name, revision, next_at, last_at, paused, text = found
    expression, tz, seconds, template = json.loads(text)
    return Schedule(
        name=name,
        expression=expression,
        tz=tz,
        seconds=seconds,
        job=job_of(template),
        next_at=None if next_at is None else at(next_at),
        last_at=None if last_at is None else at(last_at),
        paused=bool(paused),
        revision=revision,
    )
