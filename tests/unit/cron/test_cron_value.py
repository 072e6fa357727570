"""`Cron` as a value: what it is made from, what may be asked, and what it answers."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

import pytest

from treadle.core.cron import Cron, Occurrence
from treadle.core.cron.occurrence import EARLIEST, LATEST
from treadle.core.errors import InvalidArgument

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_equal_by_expression_zone_and_seconds():
    assert Cron("0 3 * * *") == Cron("0 3 * * *", "UTC", seconds=False)
    assert hash(Cron("0 3 * * *")) == hash(Cron("0 3 * * *", "UTC"))
    different = {Cron("0 3 * * *"), Cron("0 3 * * *", "Europe/Berlin"), Cron("0 4 * * *"), Cron("0 0 3 * * *", seconds=True)}
    assert len(different | {Cron("0 3 * * *")}) == 4


def test_frozen():
    cron = Cron("0 3 * * *")
    for name in ("expression", "tz", "seconds", "parsed", "zone"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(cron, name, None)


@pytest.mark.parametrize(
    ("cron", "text"),
    [
        (Cron("0 3 * * *"), "Cron('0 3 * * *', tz='UTC')"),
        (Cron("0 0 3 * * *", "Europe/Berlin", seconds=True), "Cron('0 0 3 * * *', tz='Europe/Berlin', seconds=True)"),
    ],
)
def test_repr_makes_it_again(cron, text):
    assert repr(cron) == text
    assert eval(text) == cron


@pytest.mark.parametrize("again", [lambda c: pickle.loads(pickle.dumps(c)), copy.copy, copy.deepcopy, dataclasses.replace])
def test_copies_are_equal_and_answer_alike(again):
    cron = Cron("0 3 * * *", "Europe/Berlin")
    assert again(cron) == cron
    assert again(cron).next(NOON) == cron.next(NOON)


def test_answers_are_aware_in_utc_whatever_the_question_is_in():
    cron = Cron("0 3 * * *", "Europe/Berlin")
    for zone in (UTC, timezone(timedelta(hours=9)), timezone(-timedelta(hours=11, minutes=30, seconds=7))):
        question = NOON.astimezone(zone)
        for answer in (cron.next(question), cron.previous(question), *cron.upcoming(question, 2)):
            assert answer.tzinfo is UTC
        assert cron.next(question) == datetime(2026, 6, 2, 1, tzinfo=UTC)
        assert cron.previous(question) == datetime(2026, 6, 1, 1, tzinfo=UTC)


def test_next_is_strictly_later_and_previous_strictly_earlier():
    cron, tick = Cron("0 12 * * *"), timedelta(microseconds=1)
    day = timedelta(days=1)
    assert cron.next(NOON) == NOON + day
    assert cron.previous(NOON) == NOON - day
    assert cron.next(NOON - tick) == NOON
    assert cron.previous(NOON + tick) == NOON
    assert cron.next(NOON + tick) == NOON + day
    assert cron.previous(NOON - tick) == NOON - day


def test_upcoming_is_next_over_and_over():
    cron = Cron("*/7 * * * *", "Europe/Berlin")
    answer, expected = NOON, []
    for _ in range(50):
        answer = cron.next(answer)
        expected.append(answer)
    assert cron.upcoming(NOON, 50) == expected
    assert cron.upcoming(NOON, 0) == []


class _NoOffset(tzinfo):
    def utcoffset(self, moment):
        return None


@pytest.mark.parametrize("ask", ["next", "previous", "upcoming"])
@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (datetime(2026, 6, 1, 12), "must be an aware datetime, not 2026-06-01T12:00:00 without a time zone: add tzinfo=UTC"),
        (datetime(2026, 6, 1, 12, tzinfo=_NoOffset()), "must be an aware datetime"),
        (date(2026, 6, 1), "must be a datetime, not date"),
        ("2026-06-01T12:00:00Z", "must be a datetime, not str"),
        (1780315200.0, "must be a datetime, not float"),
        (None, "must be a datetime, not NoneType"),
    ],
)
def test_only_aware_moments_may_be_asked_about(ask, moment, told):
    cron = Cron("0 3 * * *")
    arguments = (moment, 1) if ask == "upcoming" else (moment,)
    with pytest.raises(InvalidArgument, match=r"^(after|before) ") as raised:
        getattr(cron, ask)(*arguments)
    assert told in str(raised.value)


@pytest.mark.parametrize("count", [-1, 10_001, 10**30, 1.0, "5", None, True])
def test_the_count_is_bounded(count):
    with pytest.raises(InvalidArgument, match="count must be a whole number from 0 to 10,000, not "):
        Cron("0 3 * * *").upcoming(NOON, count)


@pytest.mark.parametrize("seconds", [None, 0, 1, "yes"])
def test_seconds_is_a_bool(seconds):
    with pytest.raises(InvalidArgument, match="seconds must be True or False, not "):
        Cron("0 3 * * *", "UTC", seconds)


@pytest.mark.parametrize("tz", ["UTC", "Etc/GMT+12", "Pacific/Kiritimati", "America/New_York", "Asia/Manila"])
def test_the_ends_of_the_calendar_answer_none_and_never_overflow(tz):
    zones = [UTC, timezone(timedelta(hours=23, minutes=59)), timezone(-timedelta(hours=23, minutes=59))]
    crons = [Cron(text, tz) for text in ("* * * * *", "0 0 29 2 *", "59 23 31 12 *", "0 0 1 1 *")]
    crons.append(Cron("* * * * * *", tz, seconds=True))
    for cron in crons:
        for zone in zones:
            first, last = datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)
            assert cron.next(last) is None
            assert cron.previous(first) is None
            assert cron.upcoming(last, 3) == []
            beginning, end = cron.next(first), cron.previous(last)
            assert EARLIEST < beginning < EARLIEST + timedelta(days=366 * 4)
            assert LATEST - timedelta(days=366 * 4) < end < LATEST
            assert cron.previous(beginning) is None
            assert cron.next(end) is None
            assert cron.next(beginning - timedelta(microseconds=1)) == beginning
            assert cron.previous(end + timedelta(microseconds=1)) == end


def test_what_a_clock_change_did_is_told():
    change = datetime(2026, 3, 29, 1, tzinfo=UTC)  # Berlin goes from 02:00 to 03:00
    early = datetime(2026, 3, 29, tzinfo=UTC)

    def local(hour: int, minute: int) -> datetime:
        return datetime(2026, 3, 29, hour, minute)

    (moved,) = Cron("30 2 * * *", "Europe/Berlin").occurrences(early, 1)
    assert moved == Occurrence(change, local(2, 30), local(2, 30), moved=True)
    assert not moved.merged
    (several,) = Cron("*/15 2 * * *", "Europe/Berlin").occurrences(early, 1)
    assert several == Occurrence(change, local(2, 0), local(2, 45), moved=True)
    assert several.merged
    (with_the_end,) = Cron("0 2,3 * * *", "Europe/Berlin").occurrences(early, 1)
    assert with_the_end == Occurrence(change, local(2, 0), local(3, 0), moved=True)
    assert with_the_end.merged
    (untouched,) = Cron("0 3 * * *", "Europe/Berlin").occurrences(early, 1)
    assert untouched == Occurrence(change, local(3, 0), local(3, 0), moved=False)
    assert not untouched.merged
