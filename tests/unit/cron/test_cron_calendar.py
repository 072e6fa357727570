"""Expressions on the calendar from 1970 to 2200, against a walk day by day, and against another implementation."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, time, timedelta

import pytest
from cron_walk import NAMES, Matcher, any_expression
from cronsim import CronSim
from hypothesis import given, settings, strategies as st

from treadle.core.cron import Cron
from treadle.core.errors import InvalidArgument

EIGHT_YEARS_AND_MORE = 8 * 366 + 40
moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 12, 31), timezones=st.just(UTC))
seeds = st.integers(0, 2**32)


def walked(matches: Matcher, start: datetime, direction: int) -> datetime | None:
    """The nearest run strictly after (1) or before (-1) `start`, in UTC."""
    times = [datetime.combine(date.min, time(*clock)).time() for clock in matches.times()][::direction]
    for days in range(EIGHT_YEARS_AND_MORE):
        day = start.date() + timedelta(days=days * direction)
        if matches.day(day):
            for clock in times:
                moment = datetime.combine(day, clock, UTC)
                if (moment - start) * direction > timedelta(0):
                    return moment
    return None


@given(seeds, moments, st.booleans())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_next_and_previous_agree_with_a_walk_day_by_day(seed, moment, seconds):
    text = any_expression(random.Random(seed), seconds=seconds)
    matches = Matcher(text)
    later, earlier = walked(matches, moment, 1), walked(matches, moment, -1)
    if later is None:
        with pytest.raises(InvalidArgument, match="never comes true"):
            Cron(text, seconds=seconds)
        return
    cron = Cron(text, seconds=seconds)
    assert cron.next(moment) == later
    assert cron.previous(moment) == earlier


@given(
    seeds, moments, st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"])
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_next_and_previous_undo_each_other(seed, moment, tz):
    text = any_expression(random.Random(seed))
    try:
        cron = Cron(text, tz)
    except InvalidArgument:
        return
    later = cron.next(moment)
    earlier = cron.previous(moment)
    assert later is not None
    assert earlier is not None
    assert earlier < moment < later or cron.next(earlier) == moment
    assert cron.previous(later) == (moment if cron.next(earlier) == moment else earlier)
    assert cron.next(earlier) == (moment if cron.previous(later) == moment else later)
    assert cron.next(later - timedelta(microseconds=1)) == later
    assert cron.previous(earlier + timedelta(microseconds=1)) == earlier


def has_a_stepped_range_of_one(text: str) -> bool:
    members = [(place, member) for place, field in enumerate(text.split(), 1) for member in field.split(",")]
    spans = [(place, member.split("/")[0].lower().split("-")) for place, member in members if "/" in member and "-" in member]
    return any(low == high or (place in NAMES and low == NAMES[place][int(high)]) for place, (low, high) in spans)


def test_another_implementation_agrees_where_its_rules_are_the_same():
    rng = random.Random(2026)
    compared = 0
    while compared < 2000:
        text = any_expression(rng)
        day, weekday = text.split()[2], text.split()[4]
        # cronsim takes a day field that begins with * for unrestricted, and a stepped range of one value for an open one.
        if ((day[0] == "*" or weekday[0] == "*") and "*" not in (day, weekday)) or has_a_stepped_range_of_one(text):
            continue
        try:
            cron = Cron(text)
        except InvalidArgument:
            continue
        after = datetime(rng.randint(1970, 2199), rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), tzinfo=UTC)
        other = CronSim(text, after)
        assert cron.upcoming(after, 3) == [next(other) for _ in range(3)], (text, after)
        compared += 1


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 0 29 2 *", "2196-03-01T00:00Z", "2204-02-29T00:00Z"),
        ("0 0 29 2 *", "1896-03-01T00:00Z", "1904-02-29T00:00Z"),
        ("0 0 29 2 *", "1996-03-01T00:00Z", "2000-02-29T00:00Z"),
        ("59 23 31 12 *", "2199-12-31T23:59Z", "2200-12-31T23:59Z"),
        ("0 0 31 */2 *", "2026-07-31T00:00Z", "2027-01-31T00:00Z"),
        ("0 0 30 2,6 *", "2026-06-30T00:00Z", "2027-06-30T00:00Z"),
        ("0 0 1 1 *", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00Z"),
    ],
)
def test_rare_days(text, after, expected):
    question, answer = datetime.fromisoformat(after), datetime.fromisoformat(expected)
    assert Cron(text).next(question) == answer
    assert Cron(text).next(answer - timedelta(microseconds=1)) == answer
    assert Cron(text).previous(answer + timedelta(microseconds=1)) == answer
    assert Cron(text).next(Cron(text).previous(answer)) == answer
