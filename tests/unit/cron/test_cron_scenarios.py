"""Faults that people reported of other schedulers, as far as they concern expressions and their instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from treadle.core.cron import Cron
from treadle.core.errors import InvalidArgument


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def runs(expression: str, tz: str, after: str, count: int) -> list[str]:
    return [run.strftime("%Y-%m-%dT%H:%MZ") for run in Cron(expression, tz).upcoming(at(after), count)]


def january(*days: int) -> list[str]:
    return [f"2026-01-{day:02}T00:00Z" for day in days]


@pytest.mark.parametrize("expression", ["*/0 * * * *", "1-5/0 * * * *", "*/000 * * * *"])
def test_scenario_1_a_zero_step_is_refused(expression):
    with pytest.raises(InvalidArgument, match="allowed are steps of 1 to 60"):
        Cron(expression)


def test_scenario_3_dates_that_never_come_are_refused():
    for expression in ("0 0 31 2 *", "0 0 31 6,9,11 *"):
        with pytest.raises(InvalidArgument, match="never comes true"):
            Cron(expression)
    assert runs("0 0 30 2 1", "UTC", "2026-01-01T00:00Z", 1) == ["2026-02-02T00:00Z"]


def test_scenario_5_a_leap_day_across_2100():
    assert runs("0 0 29 2 *", "UTC", "2096-03-01T00:00Z", 1) == ["2104-02-29T00:00Z"]
    assert Cron("0 0 29 2 *").previous(at("2104-02-29T00:00Z")) == at("2096-02-29T00:00Z")


def test_scenario_7_seven_is_sunday():
    assert runs("0 0 * * 7", "UTC", "2026-01-01T00:00Z", 3) == january(4, 11, 18)
    assert runs("0 0 * * 5-7", "UTC", "2026-01-01T00:00Z", 5) == january(2, 3, 4, 9, 10)


def test_scenario_9_steps_count_from_the_first_value_of_the_field():
    days = ["2026-01-28", "2026-01-31", "2026-02-01", "2026-02-04", "2026-02-07"]
    assert runs("0 0 */3 * *", "UTC", "2026-01-27T00:00Z", 5) == [f"{day}T00:00Z" for day in days]
    assert runs("0 0 * * */2", "UTC", "2026-01-02T00:00Z", 5) == january(3, 4, 6, 8, 10)


def test_scenario_11_a_stepped_star_is_a_restriction():
    assert runs("0 0 */2 * 1", "UTC", "2026-01-01T00:00Z", 5) == january(3, 5, 7, 9, 11)


@pytest.mark.parametrize("expression", ["58-2/2 * * * *", "0 0 * * 6-0"])
def test_scenario_13_a_backward_range_is_refused(expression):
    with pytest.raises(InvalidArgument, match="runs backward"):
        Cron(expression)


def test_scenario_16_midnight_that_does_not_exist_in_sao_paulo():
    assert runs("0 9 10 * *", "America/Sao_Paulo", "2018-10-17T12:00-03:00", 1) == ["2018-11-10T11:00Z"]
    assert runs("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00-03:00", 2) == ["2018-11-04T03:00Z", "2018-11-05T02:00Z"]


def test_scenario_17_no_day_is_lost_in_cairo():
    expected = ["2025-04-24T20:00Z", "2025-04-24T22:00Z", "2025-04-24T23:00Z", "2025-04-25T01:00Z", "2025-04-25T03:00Z"]
    assert runs("0 */2 * * *", "Africa/Cairo", "2025-04-24T21:10:20+02:00", 5) == expected


def test_scenario_20_the_short_sunday_is_not_passed_over():
    assert runs("0 12 * * 0", "Europe/Berlin", "2022-03-24T12:00+01:00", 2) == ["2022-03-27T10:00Z", "2022-04-03T10:00Z"]


def test_scenario_22_neither_months_late_nor_in_the_past():
    assert runs("30 2 * * *", "America/New_York", "2026-03-07T12:00-05:00", 2) == ["2026-03-08T07:00Z", "2026-03-09T06:30Z"]
    assert runs("*/5 * * * *", "America/New_York", "2026-03-08T01:59-05:00", 2) == ["2026-03-08T07:00Z", "2026-03-08T07:05Z"]


def test_scenario_22_every_answer_is_strictly_later_than_the_question():
    for expression in ("30 2 * * *", "*/5 * * * *", "* * * * *"):
        cron = Cron(expression, "America/New_York")
        for change in (at("2026-03-08T07:00Z"), at("2025-11-02T06:00Z")):
            for seconds in range(-7200, 7200, 17):
                question = change + timedelta(seconds=seconds, microseconds=seconds % 3)
                answer = cron.next(question)
                assert answer is not None
                assert answer > question


def test_scenario_23_the_midnight_after_the_change():
    assert runs("0 0 * * *", "Europe/Prague", "2026-03-29T00:30+01:00", 1) == ["2026-03-29T22:00Z"]


def test_scenario_25_a_daily_job_runs_once_on_the_day_the_clock_goes_back():
    cron = Cron("0 17 * * *", "America/New_York")
    found = cron.upcoming(at("2025-11-01T12:00-04:00"), 10)
    assert [run for run in found if run <= at("2025-11-03T12:00-05:00")] == [at("2025-11-01T21:00Z"), at("2025-11-02T22:00Z")]


def test_scenario_27_no_way_back_in_time_inside_the_fold():
    cron = Cron("* * * * *", "America/New_York")
    expected = ["2025-11-02T05:59Z", "2025-11-02T07:00Z", "2025-11-02T07:01Z"]
    assert runs("* * * * *", "America/New_York", "2025-11-02T01:58-04:00", 3) == expected
    for minute in range(60):
        assert cron.next(at("2025-11-02T06:00Z") + timedelta(minutes=minute)) == at("2025-11-02T07:00Z")


def test_scenario_28_two_o_clock_is_not_lost():
    expected = ["2025-03-09T10:00Z", "2025-03-10T09:00Z"]
    assert runs("0 2 * * *", "America/Los_Angeles", "2025-03-08T12:00-08:00", 2) == expected


def test_scenario_31_the_first_minute_of_the_repeated_hour():
    assert runs("* * * * *", "America/Sao_Paulo", "2016-02-21T02:00:00Z", 1) == ["2016-02-21T03:00Z"]
