"""The scheduler: fires what is due, each time once, however many processes run one (T8 to T12)."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from treadle.core.errors import InvalidArgument
from treadle.core.schedule import Schedule
from treadle.core.store import REWOUND, DueSchedules, Firing, ScheduleStore
from treadle.engine.clock import EngineClock
from treadle.engine.service import Service

if TYPE_CHECKING:
    from treadle.core.cron import Cron

BATCH = 500
PATIENCE = 3  # batches in a row that others were quicker to fire


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
        self._unreadable: set[tuple[str, str, str]] = set()
        self._latest: datetime | None = None

    async def run_once(self) -> None:
        """Fire all that is due now, once each, however many of its times have passed (T10)."""
        soonest = self._clock.seconds() + self._longest
        lost = 0
        while lost < PATIENCE:
            asked = self._clock.seconds()
            limit = BATCH + len(self._unreadable)  # those stay due, and must not stand in the way of the others
            due = await self._store.due_schedules(limit, now=self._clock.for_store())
            await self._look_back(due.now)
            firings, rewound = self._sorted(due)
            answers = await self._store.fire(firings, now=self._clock.for_store()) if firings else []
            await self._recompute(rewound, due.now)
            soonest = min([soonest, *(asked + wait for wait in _waits(due, firings, full=len(due.schedules) >= limit))])
            if not (firings or rewound) or (len(due.schedules) < limit and None not in answers and not rewound):
                break
            lost = 0 if any(answers) else lost + 1
        self.interval = max(0.0, soonest - self._clock.seconds())

    def _sorted(self, due: DueSchedules) -> tuple[list[Firing], list[Schedule]]:
        """What to fire, and what to compute anew, since the clock has been set back from beyond its last firing."""
        firings: list[Firing] = []
        rewound: list[Schedule] = []
        coming: dict[tuple[str, str, bool], datetime | None] = {}  # many schedules have the same times
        for schedule in due.schedules:
            if schedule.next_at is None or schedule.next_at > due.now:
                rewound.append(schedule)
                continue
            times = (schedule.expression, schedule.tz, schedule.seconds)
            try:
                if times not in coming:
                    coming[times] = next_after(schedule, due.now)
            except InvalidArgument as error:
                self._tell_unreadable(schedule, error)
            else:
                firings.append(Firing(schedule, coming[times], schedule.firing(self._new_id())))
        return firings, rewound

    def _tell_unreadable(self, schedule: Schedule, error: InvalidArgument) -> None:
        """Leave it to a worker that can read it: this machine may lack its zone, or be older than whoever stored it."""
        meaning = (schedule.name, schedule.expression, schedule.tz)
        if meaning not in self._unreadable:
            self._unreadable.add(meaning)
            self._logger.error("schedule %r cannot be fired by this worker, the others go on: %s", schedule.name, error)

    async def _look_back(self, now: datetime) -> None:
        """Where the clock was set back, compute anew what was computed from a time that was none, or there is a silence.

        `due_schedules` tells of what fired then. This finds what was skipped, made or resumed then.
        """
        latest, self._latest = self._latest, now
        if latest is None or now >= latest - timedelta(seconds=REWOUND):
            return
        after = ""
        while page := await self._store.list_schedules(after=after, limit=BATCH):
            await self._recompute([one for one in page if not one.paused and _waits_for_nothing(one, now)], now)
            after = page[-1].name

    async def _recompute(self, schedules: Iterable[Schedule], now: datetime) -> None:
        """Store the first time after now as the next one, wherever it is another."""
        changed = []
        for schedule in schedules:
            try:
                again = replace(schedule, next_at=next_after(schedule, now), last_at=_at_most(schedule.last_at, now))
            except InvalidArgument as error:
                self._tell_unreadable(schedule, error)
            else:
                if again != schedule:
                    changed.append(again)
        if changed:
            self._logger.warning(
                "the clock was set back; the next run of %d schedule(s) is computed anew: %s",
                len(changed),
                ", ".join(repr(one.name) for one in changed[:5]) + (" ..." if len(changed) > 5 else ""),
            )
            await asyncio.gather(*(self._store.put_schedule(one, expect=one.revision) for one in changed))


def next_after(schedule: Schedule, now: datetime) -> datetime | None:
    """The first time strictly after now: what was missed is not made up time by time (T10).

    Raises `InvalidArgument` for what cannot be read here: a zone that this machine lacks, say.
    """
    return _parsed(schedule.expression, schedule.tz, schedule.seconds).next(now)


def _waits(due: DueSchedules, firings: Sequence[Firing], *, full: bool) -> list[float]:
    """The seconds from the store's now until the next firings: those just advanced, and those that were not due yet."""
    waits = [(firing.next_at - due.now).total_seconds() for firing in firings if firing.next_at is not None]
    return waits if full or due.next_in is None else [*waits, due.next_in]


def _waits_for_nothing(schedule: Schedule, now: datetime) -> bool:
    """Whether it may wait for a time that a clock which ran ahead led to; one that has just fired is left alone."""
    due = schedule.next_at is not None and schedule.next_at <= now
    return not due and (schedule.last_at is None or schedule.last_at <= now)


def _at_most(moment: datetime | None, now: datetime) -> datetime | None:
    return moment if moment is None else min(moment, now)


@functools.lru_cache(maxsize=4096)  # parsing costs more than asking for the next time
def _parsed(expression: str, tz: str, seconds: bool) -> Cron:
    from treadle.core.cron import Cron  # loads the zone data, which a program without cron needs not

    return Cron(expression, tz, seconds)
