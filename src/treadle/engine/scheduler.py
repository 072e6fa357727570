"""The scheduler: fires what is due, each time once, however many processes run one (T8 to T12)."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from treadle.core.schedule import Schedule
from treadle.core.store import REWOUND, Firing, ScheduleStore
from treadle.engine.clock import EngineClock
from treadle.engine.service import Service

if TYPE_CHECKING:
    from treadle.core.cron import Cron

BATCH = 500


class Scheduler(Service):
    """Sleeps until the next due time, and never waits for handlers.

    There is no leader: every process fires what it finds due, and the store lets one of them win each time.
    """

    def __init__(
        self,
        store: ScheduleStore,
        clock: EngineClock,
        logger: logging.Logger,
        interval: float,
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(interval, clock, logger)
        self._longest = interval
        self._store = store
        self._new_id = new_id

    async def run_once(self) -> None:
        """Fire all that is due now, once each, however many of its times have passed (T10)."""
        while True:
            due = await self._store.due_schedules(BATCH, now=self._clock.for_store())
            firings = []
            for schedule in due.schedules:
                if schedule.last_at is not None and schedule.last_at > due.now + timedelta(seconds=REWOUND):
                    await self._rewind(schedule, due.now)
                else:
                    firings.append(Firing(schedule, next_after(schedule, due.now), schedule.firing(self._new_id())))
            if firings:
                await self._store.fire(firings, now=self._clock.for_store())
            if len(due.schedules) < BATCH:
                break
        self.interval = self._longest if due.next_in is None else min(due.next_in, self._longest)

    async def _rewind(self, schedule: Schedule, now: datetime) -> None:
        """Compute the next time anew: the clock ran ahead when the schedule last fired, and has been set back."""
        self._logger.warning("the clock was set back since schedule %r fired; its next run is computed anew", schedule.name)
        again = replace(schedule, next_at=next_after(schedule, now), last_at=now)
        await self._store.put_schedule(again, expect=schedule.revision)


def next_after(schedule: Schedule, now: datetime) -> datetime | None:
    """The first time strictly after now: what was missed is not made up time by time (T10)."""
    return _parsed(schedule.expression, schedule.tz, schedule.seconds).next(now)


@functools.lru_cache(maxsize=4096)  # parsing costs more than asking for the next time
def _parsed(expression: str, tz: str, seconds: bool) -> Cron:
    from treadle.core.cron import Cron  # loads the zone data, which a program without cron needs not

    return Cron(expression, tz, seconds)
