"""Names, keys and numbers: each limit, at it and one past it (E1, E4, E8)."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from treadle.core.errors import InvalidArgument
from treadle.core.policies import limits


@pytest.mark.parametrize("text", ["a", "x" * 255, "😀" * 255, "a b", "a\tb", "ключ", "a\u2060b"])
def test_a_key_that_is_allowed(text):
    assert limits.checked_key(text, "key") == text


@pytest.mark.parametrize(
    "text, told",
    [
        ("", "has 0 characters; it must have 1 to 255"),
        ("x" * 256, "has 256 characters"),
        ("😀" * 256, "has 256 characters"),
        (" a", "white space"),
        ("a\n", "white space"),
        ("\u3000a", "white space"),
        ("a\ufeff", "white space"),
        ("\ufeffa", "white space"),
        ("a\0b", "NUL"),
        ("a\ud800", "surrogate"),
        (7, "must be text, not int"),
        (None, "must be text, not NoneType"),
        (b"a", "must be text, not bytes"),
    ],
)
def test_a_key_that_is_refused_with_the_reason(text, told):
    with pytest.raises(InvalidArgument) as caught:
        limits.checked_key(text, "the key")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["plugin:x", "function:x", "", "x" * 129, " x"])
def test_a_name_that_is_refused(name):
    for _ in range(2):  # what failed is not remembered as good
        with pytest.raises(InvalidArgument):
            limits.checked_name(name)


def test_a_name_may_have_128_code_points():
    assert limits.checked_name("😀" * 128) == "😀" * 128


@pytest.mark.parametrize("queue", ["functions", "plugin:x", "function:x", ""])
def test_queues_of_the_faces_are_refused(queue):
    with pytest.raises(InvalidArgument):
        limits.checked_queue(queue)


@pytest.mark.parametrize("value", [0, 10_001, -1, True, False, 1.0, "3", None])
def test_max_attempts_outside_1_to_10000_is_refused(value):
    with pytest.raises(InvalidArgument, match="10,000"):
        limits.checked_max_attempts(value)


@pytest.mark.parametrize("value", [-1001, 1001, True, 1.5, "1"])
def test_priority_outside_its_range_is_refused(value):
    with pytest.raises(InvalidArgument, match="1,000"):
        limits.checked_priority(value)


def test_the_ends_of_the_ranges_are_allowed():
    assert [limits.checked_max_attempts(n) for n in (1, 10_000)] == [1, 10_000]
    assert [limits.checked_priority(n) for n in (-1000, 1000)] == [-1000, 1000]


@pytest.mark.parametrize(
    "value", [-1, -0.001, math.nan, math.inf, -math.inf, timedelta(seconds=-1), True, "5", None, 10**400, 1e300]
)
def test_a_delay_that_is_no_delay_is_refused(value):
    with pytest.raises(InvalidArgument):
        limits.checked_delay(value)


def test_delays_are_seconds_or_timedeltas():
    assert limits.checked_delay(2_592_000) == 2_592_000.0
    assert limits.checked_delay(timedelta(minutes=1, microseconds=1)) == 60.000001


@pytest.mark.parametrize("value", [0, -5, math.nan, math.inf, timedelta(0)])
def test_a_duration_must_be_greater_than_zero(value):
    with pytest.raises(InvalidArgument):
        limits.checked_duration(value, "the interval")


@pytest.mark.parametrize(
    "value", [datetime(2026, 1, 1), "2026-01-01", 5, datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))]
)
def test_a_moment_must_be_an_aware_datetime(value):
    with pytest.raises(InvalidArgument):
        limits.checked_moment(value)


def test_a_moment_is_given_back_in_utc():
    moment = limits.checked_moment(datetime(2026, 3, 29, 4, 30, tzinfo=timezone(timedelta(hours=2))))
    assert moment == datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
    assert moment.tzinfo is UTC


def test_a_huge_value_is_cut_in_the_message():
    with pytest.raises(InvalidArgument) as caught:
        limits.checked_key("x" * 100_000, "the key")
    assert len(str(caught.value)) < 200
