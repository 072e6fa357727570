"""Cron entries: each firing enqueues a job of a function; it does not call the function (F12)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from msgspec import Raw

from treadle.client import wire
from treadle.core.cron import Cron
from treadle.core.errors import Conflict, InvalidArgument, NotFound
from treadle.core.job import NewJob
from treadle.core.policies.limits import FUNCTIONS_QUEUE
from treadle.core.schedule import Schedule
from treadle.engine.schedules import Schedules
from treadle.functions.function import PREFIX, checked_function_name

MAX_NAME = 100
NAME_PATTERN = "[A-Za-z0-9_][A-Za-z0-9._:-]*"
_NAME = re.compile(NAME_PATTERN + r"\Z", re.ASCII)


class CronEntries:
    """The schedules whose jobs are functions'; others in the store are not touched."""

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def create(self, name: str, schedule: str, function: str, payload_json: str = "null") -> wire.CronJob:
        """Store an entry; its payload is what it is now. Raises `InvalidArgument`, or `Conflict` if the name is in use."""
        cron = Cron.with_seconds(schedule)
        job = NewJob(id="", name=PREFIX + checked_function_name(function), payload_json=payload_json, queue=FUNCTIONS_QUEUE)
        try:
            return _shown(await self._schedules.create(PREFIX + checked_cron_name(name), cron, job))
        except Conflict:
            raise Conflict(f"the cron entry {name!r} exists; delete it first, or choose another name") from None

    def list(self) -> AsyncIterator[wire.CronJob]:
        """All entries, by name, read as they are taken."""
        return (_shown(schedule) async for schedule in self._schedules.iterate(PREFIX))

    async def delete(self, name: str) -> None:
        """Delete the entry, so that it fires no more; its jobs stay. Raises `NotFound`."""
        unknown = NotFound(f"there is no cron entry {name[:80]!r}")
        if len(name) > MAX_NAME or not _NAME.match(name):
            raise unknown
        try:
            await self._schedules.delete(PREFIX + name)
        except NotFound:
            raise unknown from None


def checked_cron_name(value: str) -> str:
    """A name that can stand in a path as it is. Raises `InvalidArgument`."""
    if len(value) > MAX_NAME or not _NAME.match(value):
        raise InvalidArgument(
            f"the cron entry's name must be 1 to {MAX_NAME} letters, digits and . _ : - and begin with a letter, a digit or _; "
            f"not {value[:80]!r}"
        )
    return value


def _shown(schedule: Schedule) -> wire.CronJob:
    return wire.CronJob(
        name=schedule.name.removeprefix(PREFIX),
        schedule=schedule.expression,
        function=schedule.job.name.removeprefix(PREFIX),
        payload=Raw(schedule.job.payload_json.encode()),
        last_run=schedule.last_at,
        next_run=None if schedule.last_at is None else schedule.next_at,
    )
