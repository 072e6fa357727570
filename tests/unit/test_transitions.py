"""The rules of what an attempt becomes, as functions of values (E14, E15, E17, E21, E24)."""

import random
from datetime import UTC, datetime

import pytest

from treadle.core.job import Job, State
from treadle.core.outcome import Dead, Released, RetryAfter
from treadle.core.policies.retry import Exponential
from treadle.core.signals import CallFailed, GiveUp, Retry, Snooze
from treadle.core.transitions import (
    LEASE_EXPIRED,
    asked_for,
    clipped_error,
    error_text,
    on_expired,
    on_failure,
    on_interrupted,
)

POLICY = Exponential(1, 900)


def job(attempts=1, max_attempts=3, interruptions=0) -> Job:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Job(
        "id",
        "default",
        "mail",
        "null",
        State.RUNNING,
        0,
        now,
        now,
        now,
        attempts=attempts,
        max_attempts=max_attempts,
        interruptions=interruptions,
    )


def failed(job, error):
    return on_failure(job, POLICY, error, random.random)


def test_a_failure_with_attempts_left_is_retried_after_the_policys_wait():
    assert failed(job(2), ValueError("no")) == RetryAfter(2.0, "ValueError: no")


def test_the_last_failure_is_dead():
    assert failed(job(3), ValueError("no")) == Dead("ValueError: no")
    assert failed(job(4), ValueError("no")) == Dead("ValueError: no")


def test_retry_sets_its_own_delay_and_spends_the_attempt():
    assert failed(job(1), Retry(delay=7)) == RetryAfter(7.0, "Retry: the handler asked for a retry")
    assert failed(job(2), Retry()) == RetryAfter(2.0, "Retry: the handler asked for a retry")
    assert isinstance(failed(job(3), Retry(delay=7)), Dead)


def test_snooze_gives_the_attempt_back_even_at_the_last():
    assert failed(job(3), Snooze(60)) == Released(60.0)


def test_give_up_is_dead_at_once():
    assert failed(job(1), GiveUp("no such user")) == Dead("GiveUp: no such user")


def test_an_expired_lease_is_claimable_at_once_or_dead_at_the_last_attempt():
    assert on_expired(job(2)) == RetryAfter(0.0, "visibility timeout exceeded")
    assert on_expired(job(3)) == Dead(LEASE_EXPIRED)


def test_the_third_interruption_counts():
    assert on_interrupted(job(), "stop") == Released(interrupted=True)
    assert on_interrupted(job(interruptions=1), "stop") == Released(interrupted=True)
    assert on_interrupted(job(interruptions=2), "stop") == RetryAfter(0.0, "interrupted 3 times: stop")
    assert on_interrupted(job(3, interruptions=2), "stop") == Dead("interrupted 3 times: stop")


def test_only_what_a_handler_says_itself_is_asked_for():
    assert all(asked_for(one) for one in (Retry(), Snooze(1), GiveUp()))
    assert not any(asked_for(one) for one in (None, CallFailed("broken off"), ValueError(), ExceptionGroup("", [Retry()])))


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error, text",
    [
        (ValueError("x"), "ValueError: x"),
        (ValueError(), "ValueError"),
        (Unprintable(), "Unprintable"),
        (ValueError("a\0b"), "ValueError: ab"),
        (ValueError("a\ud800b"), "ValueError: a?b"),
        (ExceptionGroup("three", [ValueError(), KeyError(), OSError()]), "ExceptionGroup: three (3 sub-exceptions)"),
    ],
)
def test_error_texts(error, text):
    assert error_text(error) == text


def test_an_error_has_at_most_500_code_points():
    assert error_text(ValueError("😀" * 600)) == "ValueError: " + "😀" * 488
    assert len(clipped_error("x" * 10_000)) == 500
    assert clipped_error("\0" * 500 + "x" * 600) == "x" * 500
