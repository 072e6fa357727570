"""L10: the schedules of a store, and the coming times of an expression."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from runs import Run, Shop, spawn
from test_cli_usage import completed

from treadle import Cron, Tasks
from treadle.core.job import NewJob
from treadle.core.schedule import Schedule
from treadle.stores.sqlite import SQLiteStore

FIELDS = ["name", "expression", "description", "tz", "seconds", "job", "payload", "queue", "priority", "max_attempts"]
FIELDS += ["last_at", "next_at", "paused", "revision"]
CHANGES = ("pause", "resume", "run", "delete")


@pytest.fixture
def scheduled(shop: Shop) -> Shop:
    """A store with two schedules that have not fired yet."""

    async def store(tasks: Tasks) -> None:
        tasks.cron("nightly", "0 3 * * *", "good", {"dry": "é"}, tz="Europe/Berlin", priority=2)
        tasks.cron("often", "*/5 * 29 2 *", "bad", max_attempts=1)
        await tasks.drain()

    shop.run(store)
    return shop


def put(shop: Shop, schedule: Schedule) -> None:
    async def write() -> None:
        store = SQLiteStore(shop.path)
        await store.put_schedule(schedule)
        await store.close()

    asyncio.run(write())


def test_l10_list_shows_each_schedule_with_its_sentence_and_runs(treadle: Run, scheduled: Shop) -> None:
    heading, nightly, often = treadle("cron", "list", "--store", scheduled.url).out.splitlines()
    assert heading.split() == ["NAME", "EXPRESSION", "ZONE", "LAST", "NEXT", "MEANING"]
    assert nightly.startswith("nightly") and "0 3 * * *" in nightly and "Europe/Berlin" in nightly and " never " in nightly
    assert nightly.endswith("At 03:00")
    assert often.endswith("Every 5 minutes, on the 29th of February") and " in " in often
    narrow = spawn("cron", "list", cwd=scheduled.folder, TREADLE_STORE=scheduled.url, COLUMNS="50").out.splitlines()
    assert max(map(len, narrow)) <= 50 and any("nightly" in line for line in narrow)


def test_l10_list_as_json_has_every_field(treadle: Run, scheduled: Shop) -> None:
    result = treadle("cron", "list", "--json", "--store", scheduled.url)
    nightly, often = result.json
    assert list(nightly) == FIELDS
    assert nightly["next_at"].endswith("Z")
    assert {name: nightly[name] for name in FIELDS if name != "next_at"} == {
        "name": "nightly", "expression": "0 3 * * *", "description": "At 03:00", "tz": "Europe/Berlin", "seconds": False,
        "job": "good", "payload": {"dry": "é"}, "queue": "default", "priority": 2, "max_attempts": None,
        "last_at": None, "paused": False, "revision": 1,
    }  # fmt: skip
    assert (often["payload"], often["max_attempts"]) == (None, 1)
    assert "é".encode() in result.stdout


def test_l10_an_empty_store_has_no_schedules(treadle: Run, stocked: Shop) -> None:
    assert treadle("cron", "list", "--store", stocked.url).out == "No schedules.\n"
    assert treadle("cron", "list", "--json", "--store", stocked.url).stdout == b"[]\n"


def test_t14_pause_resume_run_and_delete(treadle: Run, scheduled: Shop) -> None:
    def often() -> dict[str, object]:
        return next(one for one in treadle("cron", "list", "--json", "--store", scheduled.url).json if one["name"] == "often")

    store = ("--store", scheduled.url)
    assert treadle("cron", "pause", "often", *store).out == "Paused often\n"
    assert often()["paused"] is True
    assert "  paused  " in treadle("cron", "list", *store).out
    assert treadle("cron", "pause", "often", "--json", *store).json == often()
    assert treadle("cron", "resume", "often", *store).out.startswith("Resumed often; its next run: in ")
    assert treadle("cron", "resume", "often", "--json", *store).json == often()
    assert often()["last_at"] is None
    job = treadle("cron", "run", "often", "--json", *store).json
    assert (job["name"], job["schedule"], job["state"]) == ("bad", "cron:often", "pending")
    assert treadle("show", job["id"], "--json", *store).json == job
    assert str(often()["last_at"])[:10] == job["created_at"][:10]
    refused = treadle("cron", "run", "often", *store).failed_in_one_line()
    assert refused == f"treadle: schedule 'often' cannot be run now: its job {job['id']} is still pending"
    assert treadle("cron", "run", "nightly", *store).out.startswith("Enqueued good ")
    assert treadle("cron", "delete", "often", *store).out == "Deleted often\n"
    assert treadle("cron", "delete", "nightly", "--json", *store).json == {"deleted": "nightly"}
    assert treadle("cron", "list", *store).out == "No schedules.\n"
    assert len(treadle("list", "--json", *store).json) == 2  # their jobs stay


@pytest.mark.parametrize("name", CHANGES)
def test_l2_an_unknown_schedule_is_exit_1(treadle: Run, scheduled: Shop, name: str) -> None:
    for unknown in ("unknown", "", "n" * 300, "\udcff", "NIGHTLY"):
        line = treadle("cron", name, unknown, "--store", scheduled.url).failed_in_one_line()
        assert line.startswith("treadle: there is no schedule ")


@pytest.mark.parametrize("arguments", [["list"], *([name, "x"] for name in CHANGES)], ids=" ".join)
def test_l2_where_no_file_is_it_fails_and_makes_none(treadle: Run, tmp_path: Path, arguments: list[str]) -> None:
    assert "there is no store at sqlite:" in treadle("cron", *arguments).failed_in_one_line()
    assert list(tmp_path.iterdir()) == []


def test_a_schedule_that_cannot_be_read_here_is_listed_all_the_same(treadle: Run, scheduled: Shop) -> None:
    unknown = replace(Schedule.of("strange", Cron("0 3 * * *"), NewJob("", "job")), tz="Mars/Olympus", next_at=None)
    put(scheduled, unknown)
    lines = treadle("cron", "list", "--store", scheduled.url).out.splitlines()
    assert len(lines) == 4 and lines[-1].endswith("cannot be read on this machine")
    assert treadle("cron", "list", "--json", "--store", scheduled.url).json[-1]["description"] is None
    assert treadle("cron", "pause", "strange", "--store", scheduled.url).code == 0
    assert "Mars/Olympus" in treadle("cron", "resume", "strange", "--store", scheduled.url).failed_in_one_line()


def test_one_that_is_due_and_stays_so_is_told(treadle: Run, scheduled: Shop) -> None:
    late = Schedule.of("late", Cron("0 3 * * *"), NewJob("", "job"))
    put(scheduled, replace(late, next_at=datetime(2020, 1, 1, tzinfo=UTC)))
    assert any(
        line.startswith("late") and "due " in line
        for line in treadle("cron", "list", "--store", scheduled.url).out.splitlines()
    )


def test_names_are_shown_as_they_are_and_harm_no_terminal(treadle: Run, scheduled: Shop) -> None:
    put(scheduled, Schedule.of("\x1b[31mred", Cron("0 3 * * *"), NewJob("", "job")))
    assert b"\x1b" not in treadle("cron", "list", "--store", scheduled.url).stdout
    assert treadle("cron", "pause", "\x1b[31mred", "--store", scheduled.url).out == "Paused \\x1b[31mred\n"


SPRING = ("--tz", "Europe/Berlin", "--after", "2026-03-28T12:00:00Z", "--count")


def test_l10_next_as_json(treadle: Run) -> None:
    result = treadle("cron", "next", "30 2 * * *", *SPRING, "2", "--json")
    assert result.json == {
        "expression": "30 2 * * *",
        "tz": "Europe/Berlin",
        "next": ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
    }
    assert list(result.json) == ["expression", "tz", "next"]
    assert len(result.out.splitlines()) == 1 and result.stderr == b""


def test_l10_next_in_the_zone_and_in_utc_and_what_the_clocks_do(treadle: Run) -> None:
    def rows(expression: str, *options: str) -> list[str]:
        lines: list[str] = treadle("cron", "next", expression, *options).out.splitlines()
        return lines[2:]

    assert treadle("cron", "next", "30 2 * * *", *SPRING, "2").out.splitlines() == [
        "At 02:30 (Europe/Berlin)",
        "Europe/Berlin                  UTC                   CLOCK CHANGE",
        "Sun 2026-03-29 03:00:00+02:00  2026-03-29 01:00:00Z  moved: the clocks skip 02:30",
        "Mon 2026-03-30 02:30:00+02:00  2026-03-30 00:30:00Z",
    ]
    (merged,) = rows("*/20 2 * * *", *SPRING, "1")
    assert merged.endswith("moved and merged: the clocks skip 02:00 to 02:40, which are one run")
    (joined,) = rows("0 2,3 * * *", *SPRING, "1")
    assert joined.endswith("merged: those from 02:00 on, which the clocks skip, are one with this run")
    first, second = rows("30 2 * * *", "--tz", "Europe/Berlin", "--after", "2026-10-25", "--count", "2")
    assert first.endswith("2026-10-25 00:30:00Z  the clocks show 02:30 twice; this is the first time, the second is no run")
    assert second.endswith("2026-10-26 01:30:00Z")
    (samoa,) = rows("0 12 30 12 *", "--tz", "Pacific/Apia", "--after", "2011-12-29", "--count", "1")
    assert samoa.endswith("moved: the clocks skip 2011-12-30 12:00")
    assert treadle("cron", "next", "0 3 * * *", "--after", "2026-06-01T00:00Z", "--count", "1").out.splitlines() == [
        "At 03:00 (UTC)", "UTC", "2026-06-01 03:00:00Z",
    ]  # fmt: skip


def test_l10_next_options(treadle: Run) -> None:
    def times(*arguments: str) -> list[str]:
        found: list[str] = treadle("cron", "next", *arguments, "--json").json["next"]
        return found

    assert len(times("* * * * *")) == 5
    assert datetime.fromisoformat(times("* * * * *", "--count", "1")[0]) > datetime.now(UTC)
    assert times("*/30 * * * * *", "--seconds", "--after", "2026-06-01T00:00:00Z", "--count", "2") == [
        "2026-06-01T00:00:30Z", "2026-06-01T00:01:00Z",
    ]  # fmt: skip
    for moment in ("2026-06-01T02:00+02:00", "2026-06-01T00:00Z"):
        assert times("0 * * * *", "--after", moment, "--count", "1") == ["2026-06-01T01:00:00Z"]
    naive = times("0 * * * *", "--tz", "Europe/Berlin", "--after", "2026-06-01T02:00", "--count", "1")
    assert naive == ["2026-06-01T01:00:00Z"]  # a moment without an offset is one in the zone
    assert times("0 * * * *", "--after", "9999-12-31T00:00Z") == []
    assert "No more" in treadle("cron", "next", "0 * * * *", "--after", "9999-12-31T00:00Z").out
    assert len(times("* * * * *", "--count", "10000")) == 10_000


@pytest.mark.parametrize("options", [[], ["--json"], ["--seconds"]], ids=str)
@pytest.mark.parametrize("expression", ["0 0 30 2 *", "@daily", "* * * *", "61 * * * *", "", "*/0 * * * *", "é * * * *"])
def test_l10_a_refused_expression_is_exit_1_with_one_line(treadle: Run, expression: str, options: list[str]) -> None:
    result = treadle("cron", "next", expression, *options)
    assert result.failed_in_one_line().startswith("treadle: the cron expression ")
    assert result.stdout == b""


def test_six_fields_are_told_of_the_option_that_takes_them(treadle: Run) -> None:
    assert treadle("cron", "next", "* * * * * *").failed_in_one_line().endswith("; --seconds takes six")
    assert "six fields" in treadle("cron", "next", "* * * * *", "--seconds").failed_in_one_line()


BAD = (
    [],
    ["frobnicate"],
    ["list", "surplus"],
    *([name] for name in CHANGES),
    *([name, "a", "b"] for name in CHANGES),
    ["pause", "x", "--store", "memory:"],
    ["next"],
    ["next", "* * * * *", "surplus"],
    ["next", "* * * * *", "--tz", "Mars/Olympus"],
    ["next", "* * * * *", "--tz", "europe/berlin"],
    ["next", "* * * * *", "--tz", ""],
    *(["next", "* * * * *", "--count", bad] for bad in ("0", "-1", "10001", "1_0", "٣", "x", "")),
    *(["next", "* * * * *", "--after", bad] for bad in ("", "now", "1.6.2026", "2026-13-01")),
)


@pytest.mark.parametrize("arguments", BAD, ids=lambda arguments: " ".join(arguments)[:60] or "nothing")
def test_l2_bad_arguments_are_usage_errors(treadle: Run, tmp_path: Path, arguments: list[str]) -> None:
    treadle("cron", *arguments).refused_as_usage()
    assert list(tmp_path.iterdir()) == []


def test_l2_the_real_process_says_the_same(tmp_path: Path) -> None:
    spawn("cron", cwd=tmp_path).refused_as_usage()
    spawn("cron", "next", "0 0 30 2 *", cwd=tmp_path).failed_in_one_line()
    shown = spawn("cron", "next", "0 9 * * MON", "--after", "2026-06-01T00:00:00Z", "--count", "1", "--json", cwd=tmp_path)
    assert json.loads(shown.stdout)["next"] == ["2026-06-01T09:00:00Z"]


@pytest.mark.parametrize("arguments", [[], *([name] for name in ("list", *CHANGES, "next"))], ids=" ".join)
def test_l2_help_goes_to_stdout(treadle: Run, arguments: list[str]) -> None:
    result = treadle("cron", *arguments, "--help")
    assert (result.code, result.stderr) == (0, b"")
    assert result.stdout.isascii() and result.out.startswith("Usage: treadle cron")


def test_l9_commands_schedules_and_zones_complete(scheduled: Shop) -> None:
    assert completed("treadle cr") == ["cron"]
    assert completed("treadle cron re") == ["resume"]
    assert completed("treadle cron pause ", TREADLE_STORE=scheduled.url) == ["nightly", "often"]
    assert completed(f"treadle --store {scheduled.url} cron run ni") == ["nightly"]
    assert completed("treadle cron delete ", TREADLE_STORE="sqlite:/nowhere/x.db") == []
    assert completed("treadle cron next --tz europe/ber") == ["Europe/Berlin"]
