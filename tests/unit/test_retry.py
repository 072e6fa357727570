"""Retry policies: the formula, its cap, its jitter, and no overflow (E16)."""

import pytest

from treadle.core.errors import InvalidArgument
from treadle.core.policies.retry import Exponential, Fixed, retry_policy


def never() -> float:
    raise AssertionError("no chance is needed without jitter")


def test_the_library_default_doubles_from_1_s_to_900_s():
    policy = Exponential(1, 900)
    assert [policy.delay(n, never) for n in (1, 2, 3, 4, 10, 11, 12)] == [1, 2, 4, 8, 512, 900, 900]


def test_no_attempt_number_overflows():
    assert Exponential(1, 900).delay(10**9, never) == 900
    assert Exponential(10, 3600, 0.2).delay(10_000, lambda: 0.999) < 4320


@pytest.mark.parametrize("random, factor", [(0.0, 0.8), (0.5, 1.0), (1.0, 1.2)])
def test_jitter_spreads_around_the_base_after_the_cap(random, factor):
    policy = Exponential(10, 3600, jitter=0.2)
    assert policy.delay(1, lambda: random) == pytest.approx(10 * factor)
    assert policy.delay(30, lambda: random) == pytest.approx(3600 * factor)


def test_waits_are_rounded_to_the_millisecond():
    assert Exponential(0.0123456, 900).delay(1, never) == 0.012
    assert Fixed(1.23456).delay(7, never) == 1.235


def test_fixed_waits_the_same():
    assert {Fixed(5).delay(n, never) for n in (1, 2, 100)} == {5}


def test_a_function_of_the_attempt_is_a_policy_and_is_checked():
    policy = retry_policy(lambda attempt: attempt * 2)
    assert policy.delay(3, never) == 6
    with pytest.raises(InvalidArgument, match="negative"):
        retry_policy(lambda attempt: -1).delay(1, never)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1"])
def test_a_policy_that_makes_no_sense_is_refused(bad):
    with pytest.raises(InvalidArgument):
        Exponential(bad, 900)
    with pytest.raises(InvalidArgument):
        Exponential(1, 900, jitter=2)
    with pytest.raises(InvalidArgument):
        retry_policy(5)
