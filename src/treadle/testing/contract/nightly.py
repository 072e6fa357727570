"""A schedule to try a store with, and what is done with it again and again: storing, reading and firing it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from treadle.core.cron import Cron
from treadle.core.job import Enqueued
from treadle.core.schedule import Schedule
from treadle.core.store import Firing
from treadle.engine.clock import EngineClock
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial

NAME = "nightly"
MANY = 205  # more than a store would put into one round trip


def nightly(t: Trial, name: str = NAME, *, due_in: float = 0.0, job: str = "clean") -> Schedule:
    """A schedule that is not stored yet."""
    template = replace(t.new(job, {"dry": False}), queue="nights", priority=3, max_attempts=7)
    return replace(Schedule.of(name, Cron("0 3 * * *", "Europe/Berlin"), template), next_at=t.at(due_in))


async def stored(t: Trial, schedule: Schedule) -> Schedule:
    """That schedule, stored in any case."""
    answer = await t.store.put_schedule(schedule)
    expect.that(answer is not None, "a schedule that is stored in any case is answered")
    assert answer is not None
    return answer


async def there(t: Trial, name: str = NAME) -> Schedule:
    """The stored schedule of that name, which must exist."""
    found = await t.store.get_schedule(name)
    expect.that(found is not None, f"the schedule {name} is there")
    assert found is not None
    return found


async def fire(t: Trial, schedule: Schedule, next_at: datetime | None) -> Enqueued | None:
    """The answer to firing one schedule."""
    answers = await t.store.fire([Firing(schedule, next_at, schedule.firing(t.make.id()))], now=t.now)
    expect.equal(len(answers), 1, "fire answers each firing in its place")
    return answers[0]


async def fired(t: Trial, schedule: Schedule, next_at: datetime | None) -> Enqueued:
    """The answer to a firing that must make a job."""
    answer = await fire(t, schedule, next_at)
    expect.that(answer is not None and answer.created, f"the schedule {schedule.name} fires", answer)
    assert answer is not None
    return answer


def names(schedules: Iterable[Schedule]) -> list[str]:
    """Their names, in their order."""
    return [schedule.name for schedule in schedules]


def is_now(moment: datetime | None) -> bool:
    """Whether it is about now, by this machine's clock; another machine's may be wrong by hours."""
    return moment is not None and abs(EngineClock().now() - moment) < timedelta(days=1)
