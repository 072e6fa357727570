"""Every clock change since 2000 of every zone that the machine knows, against a walk minute by minute (T8)."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from cron_walk import MINUTE, Matcher, Walk, any_expression, changes, clocks

from treadle.core.cron import Cron
from treadle.core.errors import InvalidArgument

HOUR = timedelta(hours=1)
SHARES = 4
TO_THE_POINT = [
    "*/5 * * * *",
    "*/30 * * * *",
    "0 * * * *",
    "30 * * * *",
    "0 0 * * *",
    "30 0 * * *",
    "30 1 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "*/15 2 * * *",
    "0 3 * * *",
    "59 23 * * *",
    "*/7 1-3 * * 0",
    "45 */2 1,15 * 6,7",
    "* 0-3 * * 6-7",
    "17 3 * 3-4,9-11 SUN",
]


@cache
def all_changes() -> list[tuple[tuple[datetime, timedelta, timedelta], list[str]]]:
    return sorted(changes(date(2000, 1, 1), date(2038, 1, 1)).items())


def test_the_changes_are_found():
    found = dict(all_changes())
    berlin = (datetime(2026, 3, 29, 1, tzinfo=UTC), HOUR, 2 * HOUR)
    assert {"Europe/Berlin", "Europe/Paris"} <= set(found[berlin])
    assert len(found) > 2000
    assert len({name for names in found.values() for name in names}) > len(available_timezones()) // 2


def test_the_changes_of_a_zone_lie_days_apart_so_that_no_two_bear_on_the_same_moments():
    _, kinds = clocks(date(1965, 1, 1), date(2040, 1, 1))
    for offsets, names in kinds.items():
        places = [place for place, (before, after) in enumerate(pairwise(offsets)) if before != after]
        assert all(later - earlier >= 3 for earlier, later in pairwise(places)), names


@pytest.mark.parametrize("share", range(SHARES))
def test_every_change_agrees_with_the_walk(share):
    rng = random.Random(share)
    for place, ((change, before, after), names) in enumerate(all_changes()[share::SHARES]):
        zone = ZoneInfo(names[place % len(names)])
        jump = abs(after - before)
        reach = jump + 1.5 * HOUR
        walk = Walk(zone, change - reach, change + reach, warm_up=jump)
        pointed = TO_THE_POINT[place % len(TO_THE_POINT)]
        for text in (pointed, any_expression(rng, near=change + before), any_expression(rng, near=change + after)):
            agree(rng, text, zone, walk)


@pytest.mark.parametrize(
    ("name", "start", "days"),
    [
        ("Pacific/Apia", "2011-12-28T00:00Z", 5),  # a day that was not
        ("Pacific/Kwajalein", "1993-08-19T00:00Z", 4),  # another
        ("Pacific/Kiritimati", "1994-12-29T00:00Z", 5),
        ("Pacific/Kwajalein", "1969-09-29T00:00Z", 4),  # 23 hours twice
        ("Australia/Lord_Howe", "1985-10-25T00:00Z", 3),
        ("Africa/Casablanca", "2026-02-13T00:00Z", 3),
        ("Europe/Dublin", "1971-10-30T00:00Z", 3),
        ("America/Scoresbysund", "2024-03-30T00:00Z", 3),
        ("Asia/Pyongyang", "2015-08-13T00:00Z", 3),
        ("America/Caracas", "2007-12-08T00:00Z", 3),
        ("Antarctica/Casey", "2010-03-03T00:00Z", 3),
        ("Asia/Kathmandu", "1985-12-30T00:00Z", 4),
        ("UTC", "2026-02-27T00:00Z", 3),
    ],
)
def test_odd_changes_agree_with_the_walk(name, start, days):
    rng = random.Random(name)
    begin = datetime.fromisoformat(start)
    walk = Walk(ZoneInfo(name), begin, begin + timedelta(days=days), warm_up=timedelta(days=1))
    for _ in range(20):
        agree(rng, any_expression(rng), ZoneInfo(name), walk)
    for text in TO_THE_POINT:
        agree(rng, text, ZoneInfo(name), walk)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("Africa/Monrovia", "1972-01-07T00:44:30Z"),  # from -0:44:30 to 0
        ("Europe/Amsterdam", "1937-06-30T23:40:28Z"),  # by 28 seconds
        ("America/New_York", "1883-11-18T17:00:00Z"),  # from the sun's time, back by 3:58
        ("Asia/Kolkata", "1906-01-01T00:00:00Z"),
        ("Europe/Dublin", "1916-05-21T02:25:21Z"),
        ("America/St_Johns", "2011-03-13T03:31:00Z"),
        ("Australia/Lord_Howe", "2025-04-05T15:00:00Z"),
    ],
)
def test_seconds_agree_with_a_walk_second_by_second(name, change):
    rng = random.Random(name)
    zone, middle = ZoneInfo(name), datetime.fromisoformat(change)
    walk = Walk(zone, middle - HOUR, middle + HOUR, warm_up=HOUR, step=timedelta(seconds=1))
    here = middle.astimezone(zone).replace(tzinfo=None)
    texts = [any_expression(rng, seconds=True, near=here) for _ in range(12)]
    for text in (*texts, "*/20 * * * * *", "30 */5 * * * *", "59 59 * * * *", "0 0 * * * *"):
        agree(rng, text, zone, walk)


def agree(rng: random.Random, text: str, zone: ZoneInfo, walk: Walk) -> None:
    """All answers about the walked time are those of the walk, from its ends and from anywhere inside."""
    fires = walk.fires(Matcher(text))
    try:
        cron = Cron(text, zone.key, seconds=len(text.split()) == 6)
    except InvalidArgument as refused:  # the generator makes a 31 February now and then
        assert "never comes true" in str(refused)
        assert not fires
        return
    instants = [instant for instant, _ in fires]
    where = f"{cron!r} around {walk.start}"

    found = cron.occurrences(walk.start, len(fires) + 1)
    assert [occurrence.at for occurrence in found[:-1]] == instants, where
    assert found[-1].at > walk.end, where
    for occurrence, (instant, moments) in zip(found, fires, strict=False):
        assert (occurrence.first, occurrence.last) == (moments[0], moments[-1]), where
        assert occurrence.moved == (instant.astimezone(zone).replace(tzinfo=None, fold=0) != moments[0]), where
        assert occurrence.merged == (len(moments) > 1), where

    for _ in range(4):
        question = walk.start + timedelta(microseconds=rng.randrange((walk.end - walk.start) // timedelta(microseconds=1)))
        if rng.random() < 0.5:
            question = rng.choice(instants) if instants else question.replace(second=0, microsecond=0) + MINUTE
        later = bisect_right(instants, question)
        if later < len(instants):
            assert cron.next(question) == instants[later], f"{where}, after {question}"
        earlier = bisect_left(instants, question)
        if earlier:
            assert cron.previous(question) == instants[earlier - 1], f"{where}, before {question}"
