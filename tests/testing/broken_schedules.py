"""Stores whose schedules can be broken in one part: what is kept, what is found due, how one fires."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from broken_stores import caught, run

from treadle.core.filter import JobFilter
from treadle.core.job import UNFINISHED
from treadle.core.store import REWOUND, DueSchedules
from treadle.stores.memory.adapter import MemoryStore


class Kept(MemoryStore):
    """A store that changes what comes in: `kept` is what a broken column or codec makes of a schedule."""

    def kept(self, schedule):
        return schedule

    async def put_schedule(self, schedule, **options):
        return await super().put_schedule(self.kept(schedule), **options)


class Finding(MemoryStore):
    """A store that finds what is due by the parts that a query has, each of which can be another."""

    def is_paused(self, schedule):
        return schedule.paused

    def is_due(self, schedule, now):
        return schedule.next_at is not None and schedule.next_at <= now

    def is_rewound(self, schedule, now):
        return schedule.last_at is not None and schedule.last_at > now + timedelta(seconds=REWOUND)

    def is_next(self, schedule, now):
        return not self.is_due(schedule, now) and not self.is_rewound(schedule, now) and not self.is_paused(schedule)

    def order(self, schedule, now):
        return min(schedule.next_at or now, now), schedule.name

    def cut(self, due, limit):
        return due[:limit]

    def next_in(self, due, limit, waits):
        return 0.0 if len(due) > limit else min(waits, default=None)

    def own_now(self):
        return datetime.now(UTC)

    async def due_schedules(self, limit, *, now=None):
        now = now or self.own_now()
        every = await super().list_schedules()
        going = [one for one in every if not self.is_paused(one)]
        due = [one for one in going if self.is_due(one, now) or self.is_rewound(one, now)]
        due.sort(key=lambda one: self.order(one, now))
        waits = [(one.next_at - now).total_seconds() for one in every if self.is_next(one, now) and one.next_at is not None]
        return DueSchedules(now, self.cut(due, limit), self.next_in(due, limit, waits))


class Firer(MemoryStore):
    """A store that fires by the parts that a firing has, each of which can be another."""

    def fits(self, current, read):
        return not current.paused and (current.revision, current.next_at) == (read.revision, read.next_at)

    def job(self, firing, now):
        return firing.job

    def advanced(self, current, firing, answer, now):
        last_at = now if answer.created else current.last_at
        return replace(current, next_at=firing.next_at, last_at=last_at, revision=current.revision + 1)

    async def hold_up(self):
        pass

    async def enqueued(self, firing, now):
        [answer] = await self.enqueue([self.job(firing, now)], now=now)
        return answer

    async def fire(self, firings, *, now=None):
        now = now or datetime.now(UTC)
        return [await self.fire_one(firing, now) for firing in firings]

    async def fire_one(self, firing, now):
        current = await self.get_schedule(firing.schedule.name)
        if current is None or not self.fits(current, firing.schedule):
            return None
        await self.hold_up()
        answer = await self.enqueued(firing, now)
        self._schedules._kept[current.name] = self.advanced(current, firing, answer, now)
        return answer

    async def unfinished(self):
        return await self.find(JobFilter(states=UNFINISHED), limit=1000)


def caught_in_finding(broken, *tests):
    """As `caught`, and each test passes on `Finding` itself, so that it is the mutation that is caught."""
    for test in tests:
        run(Finding, test)
    caught(broken, *tests)


def caught_in_firing(broken, *tests):
    """As `caught`, and each test passes on `Firer` itself, so that it is the mutation that is caught."""
    for test in tests:
        run(Firer, test)
    caught(broken, *tests)
