"""ManualClock: stands still, moves on only when told, and tells who asked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest

from treadle.core.clock import Clock
from treadle.core.errors import InvalidArgument
from treadle.testing import ManualClock


def test_it_is_a_clock_that_starts_at_a_round_moment():
    clock = ManualClock()
    assert isinstance(clock, Clock)
    assert clock.now() == clock.now() == datetime(2026, 1, 1, tzinfo=UTC)


def test_it_starts_where_it_is_told_in_utc():
    start = datetime(2026, 3, 29, 1, 30, tzinfo=timezone(timedelta(hours=1)))
    clock = ManualClock(start)
    assert clock.now() == start
    assert clock.now().tzinfo is UTC


@pytest.mark.parametrize("start", [datetime(2026, 1, 1), "2026-01-01", 0])
def test_a_start_that_is_no_aware_datetime_is_refused(start):
    with pytest.raises(InvalidArgument, match="the clock's start"):
        ManualClock(start)


def test_it_advances_by_seconds_and_timedeltas():
    clock = ManualClock()
    start = clock.now()
    assert clock.advance(1.5) == start + timedelta(seconds=1.5)
    clock.advance(timedelta(days=30, microseconds=1))
    clock.advance(0)
    assert clock.now() == start + timedelta(days=30, seconds=1, microseconds=500_001)


@pytest.mark.parametrize("step", [-1, timedelta(microseconds=-1), float("nan"), float("inf"), "1", True, 1e300])
def test_a_step_that_is_none_is_refused_and_moves_nothing(step):
    clock = ManualClock()
    start = clock.now()
    with pytest.raises(InvalidArgument):
        clock.advance(step)
    assert clock.now() == start


def test_subscribers_are_told_after_each_advance_until_they_leave():
    clock = ManualClock()
    told = []
    unsubscribe = clock.subscribe(lambda: told.append(clock.now()))
    clock.advance(1)
    clock.advance(2)
    unsubscribe()
    unsubscribe()
    clock.advance(3)
    assert told == [clock.now() - timedelta(seconds=5), clock.now() - timedelta(seconds=3)]


def test_a_callback_may_unsubscribe_itself():
    clock = ManualClock()
    told = []

    def once():
        told.append(1)
        unsubscribe()

    unsubscribe = clock.subscribe(once)
    clock.advance(1)
    clock.advance(1)
    assert told == [1]


def test_threads_lose_no_step():
    clock = ManualClock()
    start = clock.now()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: clock.advance(0.001), range(2000)))
    assert clock.now() - start == timedelta(seconds=2)
