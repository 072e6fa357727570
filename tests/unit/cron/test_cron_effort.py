"""However hard an expression is made, an answer takes few steps: lines of the cron package that run are counted, not time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from treadle.core.cron import Cron, parse
from treadle.core.errors import InvalidArgument

STEPS_AN_ANSWER = 400
STEPS_A_REFUSAL = 4000


def steps(call: Callable[[], object]) -> int:
    count = 0

    def line(frame, event, argument):
        nonlocal count
        count += event == "line"
        return line

    def enter(frame, event, argument):
        return line if f"core{'/'}cron" in frame.f_code.co_filename.replace("\\", "/") else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("expression", "tz", "question"),
    [
        ("*/5 * * * *", "UTC", "2026-06-01T00:00Z"),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00Z"),  # eight years
        ("0 0 29 2 *", "UTC", "2104-02-28T23:59:59.999999Z"),
        ("59 59 23 29 2 *", "America/St_Johns", "2196-03-01T12:00Z"),
        ("0 0 0 31 1 *", "Europe/Berlin", "2026-01-31T12:00Z"),
        ("* * * * * *", "Antarctica/Troll", "2025-10-26T01:00:00.5Z"),  # two hours twice, second by second
        ("* * * * * *", "Pacific/Kwajalein", "1969-09-30T13:00:01Z"),  # 23 hours twice
        ("* * * * * *", "Pacific/Apia", "2011-12-30T09:59:59Z"),  # 24 hours skipped
        ("0 0 30 12 *", "Pacific/Apia", "2011-12-01T00:00Z"),
        ("*/7 * * * * *", "Africa/Monrovia", "1972-01-07T00:44:29Z"),
        ("30 2 * * *", "Australia/Lord_Howe", "2199-10-04T15:29:59Z"),
        ("59 59 23 31 12 7", "UTC", "9998-12-31T23:59:59Z"),
    ],
)
def test_an_answer_takes_few_steps(expression, tz, question):
    cron = Cron(expression, tz, seconds=len(expression.split()) == 6)
    moment = datetime.fromisoformat(question)
    assert steps(lambda: cron.next(moment)) < STEPS_AN_ANSWER
    assert steps(lambda: cron.previous(moment + timedelta(days=1))) < STEPS_AN_ANSWER


def test_an_answer_takes_few_steps_at_both_ends_of_the_calendar():
    cron = Cron("0 0 29 2 *")
    assert steps(lambda: cron.previous(datetime(4, 2, 28, tzinfo=UTC))) < STEPS_AN_ANSWER
    assert steps(lambda: cron.next(datetime(9996, 3, 1, tzinfo=UTC))) < STEPS_AN_ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "0 0 30 2 *",
        "* * 30-31 2 *",
        "0 0 31 2,4,6,9,11 *",
        "0-59 0-23 30,31 2-2 *",
        ",".join(["0-59"] * 40) + " * 30 2 *",
        "0 0 " + ",".join(["30-31"] * 40) + " 2 *",
        "0 0 31 " + ",".join(["2,4,6,9,11"] * 20) + " *",
        "1," * 500_000,
        "* " * 500_000,
        "9" * 248 + " * * * *",
        "*/" + "9" * 246 + " * * *",
        "*" * 256,
        "-" * 256,
        "," * 256,
    ],
)
def test_a_refusal_takes_few_steps(text):
    def refused() -> None:
        with pytest.raises(InvalidArgument):
            parse(text)

    assert steps(refused) < STEPS_A_REFUSAL


def test_the_steps_are_counted():
    assert steps(lambda: Cron("*/5 * * * *").upcoming(datetime(2026, 1, 1, tzinfo=UTC), 100)) > 5 * STEPS_AN_ANSWER
