"""Stores broken in what they find due and when the next schedule comes, each caught by the contract test that speaks of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from broken_schedules import Finding, caught_in_finding
from broken_stores import caught

from treadle.core.store import REWOUND, DueSchedules
from treadle.stores.memory.adapter import MemoryStore

DUE = "schedules.what_is_due_comes_earliest_first_with_the_time_of_the_next"
FOLLOWS = "schedules.what_is_due_follows_every_change"
NONE = "schedules.a_store_without_schedules_has_none_due"
CLOCK = "schedules.without_a_moment_the_stores_own_clock_decides"
REWINDING = "schedules.a_clock_that_was_set_back_is_noticed"
MANY = "schedules.many_are_listed_and_due_in_one_call"


def test_a_store_that_finds_what_is_due_in_no_order_is_caught():
    class Broken(Finding):
        def order(self, schedule, now):
            return schedule.name

    caught_in_finding(Broken, DUE, MANY)


def test_a_store_that_finds_the_latest_first_is_caught():
    class Broken(Finding):
        def order(self, schedule, now):
            return now - (schedule.next_at or now)

    caught_in_finding(Broken, DUE, MANY)


def test_a_store_that_cuts_before_it_puts_in_order_is_caught():
    class Broken(Finding):
        def cut(self, due, limit):
            return sorted(due, key=lambda one: one.name)[:limit]

    caught_in_finding(Broken, DUE, MANY)


def test_a_store_that_finds_more_than_the_limit_is_caught():
    class Broken(Finding):
        def cut(self, due, limit):
            return due

    caught_in_finding(Broken, DUE, REWINDING)


def test_a_store_that_finds_due_only_what_is_past_is_caught():
    class Broken(Finding):
        def is_due(self, schedule, now):
            return schedule.next_at is not None and schedule.next_at < now

    caught_in_finding(Broken, DUE, FOLLOWS)


def test_a_store_that_finds_due_by_the_second_is_caught():
    class Broken(Finding):
        def is_due(self, schedule, now):
            return schedule.next_at is not None and schedule.next_at.replace(microsecond=0) <= now

    caught_in_finding(Broken, DUE)


def test_a_store_that_finds_paused_schedules_due_is_caught():
    class Broken(Finding):
        def is_paused(self, schedule):
            return False

    caught_in_finding(Broken, DUE, FOLLOWS, REWINDING)


def test_a_store_that_finds_ended_schedules_due_is_caught():
    class Broken(Finding):
        def is_due(self, schedule, now):
            return schedule.next_at is None or schedule.next_at <= now

    caught_in_finding(Broken, DUE, FOLLOWS, "firings.the_last_firing_ends_the_schedule")


def test_a_store_that_waits_for_paused_schedules_is_caught():
    class Broken(Finding):
        def is_next(self, schedule, now):
            return not self.is_due(schedule, now) and not self.is_rewound(schedule, now)

    caught_in_finding(Broken, DUE)


def test_a_store_that_waits_for_what_is_due_already_is_caught():
    class Broken(Finding):
        def is_next(self, schedule, now):
            return not schedule.paused

    caught_in_finding(Broken, DUE, FOLLOWS)


def test_a_store_that_waits_for_what_is_to_be_computed_anew_is_caught():
    class Broken(Finding):
        def is_next(self, schedule, now):
            return not self.is_due(schedule, now) and not self.is_paused(schedule)

    caught_in_finding(Broken, REWINDING)


def test_a_store_that_forgets_when_the_next_schedule_is_due_is_caught():
    class Broken(Finding):
        def next_in(self, due, limit, waits):
            return 0.0 if len(due) > limit else None

    caught_in_finding(Broken, DUE, FOLLOWS, CLOCK)


def test_a_store_that_says_nothing_of_what_the_limit_left_is_caught():
    class Broken(Finding):
        def next_in(self, due, limit, waits):
            return min(waits, default=None)

    caught_in_finding(Broken, DUE, REWINDING)


def test_a_store_that_takes_a_full_answer_for_a_cut_one_is_caught():
    class Broken(Finding):
        def next_in(self, due, limit, waits):
            return 0.0 if len(due) >= limit else min(waits, default=None)

    caught_in_finding(Broken, DUE, REWINDING, MANY)


def test_a_store_that_says_zero_for_never_is_caught():
    class Broken(Finding):
        def next_in(self, due, limit, waits):
            return 0.0 if len(due) > limit else min(waits, default=0.0)

    caught_in_finding(Broken, DUE, FOLLOWS, NONE)


def test_a_store_that_waits_for_the_last_is_caught():
    class Broken(Finding):
        def next_in(self, due, limit, waits):
            return 0.0 if len(due) > limit else max(waits, default=None)

    caught_in_finding(Broken, DUE)


def test_a_store_that_waits_by_the_millisecond_is_caught():
    class Broken(Finding):
        def next_in(self, due, limit, waits):
            wait = super().next_in(due, limit, waits)
            return wait and round(wait, 3)

    caught_in_finding(Broken, DUE)


def test_a_store_that_hands_each_due_schedule_out_once_is_caught():
    class Broken(Finding):
        def __init__(self):
            super().__init__()
            self.handed = set()

        async def due_schedules(self, limit, **options):
            due = await super().due_schedules(limit, **options)
            fresh = [one for one in due.schedules if (one.name, one.revision) not in self.handed]
            self.handed |= {(one.name, one.revision) for one in fresh}
            return replace(due, schedules=fresh)

    caught_in_finding(Broken, DUE)


def test_a_store_that_answers_due_schedules_of_an_older_state_is_caught():
    class Broken(MemoryStore):
        async def due_schedules(self, limit, **options):
            due = await super().due_schedules(limit, **options)
            return replace(due, schedules=[replace(one, revision=one.revision - 1) for one in due.schedules])

    caught(Broken, DUE)


@pytest.mark.parametrize("forgotten", ["put", "fire", "delete"])
def test_a_store_whose_index_of_what_is_due_misses_a_change_is_caught(forgotten):
    class Broken(MemoryStore):
        def __init__(self):
            super().__init__()
            self.index = {}

        async def note(self, name, *, forgets):
            there = await super().get_schedule(name)
            if not forgets:
                self.index[name] = there

        async def put_schedule(self, schedule, **options):
            stored = await super().put_schedule(schedule, **options)
            await self.note(schedule.name, forgets=forgotten == "put" and schedule.name in self.index)
            return stored

        async def fire(self, firings, **options):
            answers = await super().fire(firings, **options)
            for one in firings:
                await self.note(one.schedule.name, forgets=forgotten == "fire")
            return answers

        async def delete_schedule(self, name):
            deleted = await super().delete_schedule(name)
            await self.note(name, forgets=forgotten == "delete")
            return deleted

        async def due_schedules(self, limit, *, now=None):
            finding = Finding()
            for name, schedule in self.index.items():
                if schedule is not None:
                    finding._schedules._kept[name] = schedule
            return await finding.due_schedules(limit, now=now)

    caught(Broken, FOLLOWS)


def test_a_store_that_says_another_now_than_it_was_given_is_caught():
    class Broken(MemoryStore):
        async def due_schedules(self, limit, *, now=None):
            return replace(await super().due_schedules(limit, now=now), now=datetime.now(UTC))

    caught(Broken, DUE, NONE)


def test_a_store_that_finds_what_is_due_by_its_own_clock_is_caught():
    class Broken(MemoryStore):
        async def due_schedules(self, limit, *, now=None):
            return replace(await super().due_schedules(limit), now=now or datetime.now(UTC))

    caught(Broken, DUE, FOLLOWS)


@pytest.mark.parametrize(
    "clock", [lambda: datetime.fromtimestamp(0, UTC), lambda: datetime.now(UTC).astimezone(timezone(timedelta(hours=2)))]
)
def test_a_store_whose_own_clock_is_wrong_or_not_in_utc_is_caught(clock):
    class Broken(Finding):
        def own_now(self):
            return clock()

    caught_in_finding(Broken, CLOCK)


def test_a_store_that_finds_nothing_due_by_its_own_clock_is_caught():
    class Broken(MemoryStore):
        async def due_schedules(self, limit, *, now=None):
            return await super().due_schedules(limit, now=now) if now else DueSchedules(datetime.now(UTC), [], None)

    caught(Broken, CLOCK)


# -- a clock that was set back


def test_a_store_that_does_not_notice_that_the_clock_was_set_back_is_caught():
    class Broken(Finding):
        def is_rewound(self, schedule, now):
            return False

    caught_in_finding(Broken, REWINDING)


def test_a_store_that_takes_every_wrong_clock_for_one_that_was_set_back_is_caught():
    class Broken(Finding):
        def is_rewound(self, schedule, now):
            return schedule.last_at is not None and schedule.last_at > now

    caught_in_finding(Broken, REWINDING)


def test_a_store_that_takes_a_minute_for_more_than_a_minute_is_caught():
    class Broken(Finding):
        def is_rewound(self, schedule, now):
            return schedule.last_at is not None and schedule.last_at >= now + timedelta(seconds=REWOUND)

    caught_in_finding(Broken, REWINDING)


def test_a_store_that_forgets_that_an_ended_schedule_may_have_ended_in_the_future_is_caught():
    class Broken(Finding):
        def is_rewound(self, schedule, now):
            return schedule.next_at is not None and super().is_rewound(schedule, now)

    caught_in_finding(Broken, REWINDING)


def test_a_store_that_names_twice_what_is_due_and_ahead_is_caught():
    class Broken(MemoryStore):
        async def due_schedules(self, limit, *, now=None):
            due = await super().due_schedules(limit, now=now)
            twice = [one for one in due.schedules if one.last_at and one.last_at > due.now and one.next_at]
            return replace(due, schedules=[*due.schedules, *twice][:limit])

    caught(Broken, REWINDING)


def test_a_store_that_limits_only_what_is_due_is_caught():
    class Broken(Finding):
        def cut(self, due, limit):
            ahead = [one for one in due if one.next_at is None or one.last_at is not None]
            return [one for one in due if one not in ahead][:limit] + ahead

    caught_in_finding(Broken, REWINDING)
