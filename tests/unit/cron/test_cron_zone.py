"""Names of time zones: what is one, and what people are told of the rest (T8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from treadle.core.cron import Cron
from treadle.core.cron.zone import zone_of
from treadle.core.errors import InvalidArgument


def test_every_zone_of_the_machine_is_taken():
    names = available_timezones() - {"localtime"}
    assert len(names) > 400
    for name in names:
        assert zone_of(name).key == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "UTC ",
        " UTC",
        "UTC\n",
        "Nowhere/City",
        "Berlin",
        "CEST",
        "+02:00",
        "UTC+2",
        "Europe",
        "Europe/",
        "/Europe/Berlin",
        "Europe//Berlin",
        "./UTC",
        "../UTC",
        "Europe/../UTC",
        "../../../etc/passwd",
        "/etc/localtime",
        "/usr/share/zoneinfo/UTC",
        "file:///etc/localtime",
        "C:\\Windows",
        "Europe\\Berlin",
        "zone.tab",
        "tzdata.zi",
        "iso3166.tab",
        "posix/Europe/Berlin",
        "right/Europe/Berlin",
        "posixrules",
        "localtime",
        "UTC\0",
        "Europe/Zür\u0131ch",
        "\ud800",
        "A" * 33,
        "A" * 100_000,
        "/".join(["a"] * 5_000),
    ],
)
def test_what_is_no_zone_is_refused_by_name(name):
    with pytest.raises(InvalidArgument) as raised:
        Cron("0 3 * * *", name)
    message = str(raised.value)
    assert message.startswith("there is no time zone '")
    assert repr(name[:20])[1:-1] in message
    assert "\n" not in message
    assert len(message) < 200


@pytest.mark.parametrize(
    ("name", "meant"), [("europe/berlin", "Europe/Berlin"), ("utc", "UTC"), ("America/new_york", "America/New_York")]
)
def test_the_right_case_is_suggested(name, meant):
    with pytest.raises(InvalidArgument, match=f"there is no time zone '{name}'; did you mean '{meant}'\\?"):
        Cron("0 3 * * *", name)


@pytest.mark.parametrize("zone", [None, 0, UTC, ZoneInfo("UTC"), b"UTC", timedelta(0)])
def test_what_is_not_text_is_refused(zone):
    with pytest.raises(InvalidArgument, match="a time zone must be an IANA name such as 'Europe/Berlin', not "):
        Cron("0 3 * * *", zone)


def test_the_zone_decides_the_instant():
    after = datetime(2026, 7, 1, tzinfo=UTC)
    answers = {tz: Cron("0 12 * * *", tz).next(after) for tz in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")}
    assert {tz: answer.strftime("%d %H:%M") for tz, answer in answers.items()} == {
        "UTC": "01 12:00",
        "Europe/Berlin": "01 10:00",
        "America/New_York": "01 16:00",
        "Asia/Kathmandu": "01 06:15",
    }
