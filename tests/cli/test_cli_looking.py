"""L3, L6, L8 and scenarios 118, 120: list, show and stats, for people and for machines."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from runs import DEADLINE, TREADLE, Run, Shop, environment, spawn

from treadle import Stats
from treadle.cli.commands.stats import document
from treadle.cli.output import encoded
from treadle.cli.printable import columns

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
FIELDS = ["id", "queue", "name", "payload", "state", "priority", "run_at", "created_at", "started_at", "finished_at"]
FIELDS += ["attempts", "max_attempts", "interruptions", "last_error", "dedupe_key", "idempotency_key", "worker"]
FIELDS += ["lease_until", "schedule"]


def test_l3_list_shows_each_job_newest_first(treadle: Run, stocked: Shop) -> None:
    result = treadle("list", "--store", stocked.url)
    heading, *rows = result.out.splitlines()
    assert heading.split() == ["STATE", "NAME", "WHEN", "TRIES", "QUEUE", "ID", "ERROR"]
    assert [row.split()[0] for row in rows] == ["pending", "dead", "done"]
    assert "in 59 min" in rows[0] or "in 60 min" in rows[0]
    assert "broken é → 😀" in rows[1]
    for state, job in stocked.ids.items():
        assert any(row.startswith(state) and job in row for row in rows)


def test_l3_list_filters_and_limits(treadle: Run, stocked: Shop) -> None:
    def names(*arguments: str) -> list[str]:
        return [job["name"] for job in treadle("list", "--json", "--store", stocked.url, *arguments).json]

    assert names() == ["later", "bad", "good"]
    assert names("--limit", "2") == ["later", "bad"]
    assert names("--limit", "9" * 40) == ["later", "bad", "good"]
    assert names("--status", "dead") == ["bad"]
    assert names("--status", "dead", "--status", "done") == ["bad", "good"]
    assert names("--status", "running") == []
    assert names("--name", "good") == ["good"]
    assert names("--name", "good", "--name", "later", "--status", "pending") == ["later"]
    assert names("--name", "unknown") == []
    assert treadle("list", "--store", stocked.url, "--name", "unknown").out == "No jobs.\n"
    assert treadle("list", "--store", stocked.url, "--name", "unknown", "--json").stdout == b"[]\n"


def test_l8_a_job_as_json_has_every_field(treadle: Run, stocked: Shop) -> None:
    jobs = {job["state"]: job for job in treadle("list", "--json", "--store", stocked.url).json}
    for state, job in jobs.items():
        assert list(job)[: len(FIELDS)] == FIELDS
        assert job["id"] == stocked.ids[state]
        for moment in ("run_at", "created_at"):
            assert ISO.fullmatch(job[moment])
        assert job == treadle("show", job["id"], "--json", "--store", stocked.url).json
    assert jobs["done"]["payload"] == {"n": 1}
    assert (jobs["done"]["idempotency_key"], jobs["done"]["dedupe_key"]) == ("good:1", None)
    assert (jobs["dead"]["idempotency_key"], jobs["dead"]["dedupe_key"]) == (None, "bad:1")
    assert jobs["dead"]["failures"][0]["error"] == jobs["dead"]["last_error"] == "GiveUp: broken é → 😀"
    assert (jobs["pending"]["queue"], jobs["pending"]["priority"], jobs["pending"]["max_attempts"]) == ("slow", 7, None)
    assert jobs["pending"]["finished_at"] is None


def test_l3_show_prints_the_whole_job(treadle: Run, stocked: Shop) -> None:
    result = treadle("show", stocked.ids["dead"], "--store", stocked.url)
    for text in (stocked.ids["dead"], "bad", "dead", "bad:1", '"text": "é → 😀"', "Unsuccessful attempts", "GiveUp: broken"):
        assert text in result.out
    assert treadle("show", "unknown", "--store", stocked.url).failed_in_one_line() == "treadle: there is no job 'unknown'"
    assert treadle("show", "\udcff", "--store", stocked.url).failed_in_one_line()
    assert treadle("show", "", "--store", stocked.url).failed_in_one_line()


def test_e5_payloads_come_back_exactly(treadle: Run, shop: Shop) -> None:
    payload = {"z": 2**70, "a": 0.1, "nul": "\0", "list": [None, True, {"b": "😀"}], "sep": "\u2028"}
    (job,) = shop.enqueue({"name": "exact", "payload": payload})
    shown = treadle("show", job, "--json", "--store", shop.url).json["payload"]
    assert shown == payload and list(shown) == list(payload)
    assert treadle("show", job, "--store", shop.url).code == 0


def test_l6_stats(treadle: Run, stocked: Shop) -> None:
    stocked.enqueue(*[{"name": f"twin-{n:02}", "delay": 60} for n in range(12) for _ in range(n + 1)])
    counted = treadle("stats", "--json", "--store", stocked.url).json
    assert {key: counted[key] for key in ("pending", "running", "done", "dead")} == {
        "pending": 79, "running": 0, "done": 1, "dead": 1,
    }  # fmt: skip
    assert ISO.fullmatch(counted["next_run_at"])
    assert counted["duplicate_names"] == 11 and len(counted["duplicates"]) == 10
    assert counted["duplicates"][0] == {"name": "twin-11", "pending": 12}
    plain = treadle("stats", "--store", stocked.url).out
    assert "pending   79\n" in plain and "\nnext due  in " in plain and "and 1 more" in plain


@pytest.mark.parametrize("char", ["n", "é", "😀", "\x01", '"'])
def test_l6_stats_stay_under_2_kb_whatever_the_names(char: str) -> None:
    huge = 10**15
    names = {f"{number}{char * 127}": huge for number in range(10)}
    stats = Stats(huge, huge, huge, huge, datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), names, huge)
    text = encoded(document(stats))
    assert len(text) < 2000
    assert len(json.loads(text)["duplicates"]) == 10


def test_l6_names_are_not_cut_where_they_fit() -> None:
    names = {"n" * 128: 2, "m" * 128: 2}
    assert [one["name"] for one in document(Stats(4, 0, 0, 0, None, names, 2))["duplicates"]] == list(names)


ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}


def test_scenario_118_json_does_not_depend_on_the_terminal(stocked: Shop) -> None:
    for arguments in (["list", "--json"], ["show", stocked.ids["dead"], "--json"], ["stats", "--json"]):
        result = spawn(*arguments, cwd=stocked.folder, TREADLE_STORE=stocked.url, **ASCII)
        assert (result.code, result.stderr) == (0, b"")
        assert result.json is not None
    jobs = spawn("list", "--json", cwd=stocked.folder, TREADLE_STORE=stocked.url, **ASCII)
    dead = next(job for job in jobs.json if job["state"] == "dead")
    assert dead["payload"] == {"text": "é → 😀"} and dead["last_error"].endswith("é → 😀")
    assert "é → 😀".encode() in jobs.stdout  # UTF-8, not escaped


def test_scenario_118_plain_output_does_not_crash_either(stocked: Shop) -> None:
    stocked.enqueue(*[{"name": "日本語", "delay": 60}] * 2)
    for arguments in (["list"], ["show", stocked.ids["dead"]], ["stats"], ["list", "--help"]):
        for narrow in ({}, {"COLUMNS": "60"}):
            result = spawn(*arguments, cwd=stocked.folder, TREADLE_STORE=stocked.url, **ASCII, **narrow)
            assert (result.code, result.stderr) == (0, b"")
            assert result.stdout.isascii() and result.stdout
    assert spawn("show", "é → 😀", cwd=stocked.folder, TREADLE_STORE=stocked.url, **ASCII).failed_in_one_line()


@pytest.mark.parametrize("arguments", [["list", "--json"], ["list"]], ids=" ".join)
def test_scenario_120_the_reader_goes_away(shop: Shop, arguments: list[str]) -> None:
    shop.enqueue(*[{"name": "many", "payload": n} for n in range(5000)])
    command = subprocess.Popen(
        [*TREADLE, *arguments],
        cwd=shop.folder,
        env=environment(TREADLE_STORE=shop.url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None and command.stderr is not None
    with command.stderr as errors:
        assert len(command.stdout.read(10)) == 10
        command.stdout.close()
        assert errors.read() == b""
    assert command.wait(DEADLINE) == 0
    assert len(shop.enqueue({"name": "after"})) == 1  # the store is unlocked


def test_scenario_120_in_a_shell(shop: Shop) -> None:
    shop.enqueue(*[{"name": "many", "payload": n} for n in range(5000)])
    script = f'{" ".join(TREADLE)} list --json | head -c 10; echo "code ${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment(TREADLE_STORE=shop.url),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.stderr == "" and done.stdout.endswith("code 0\n")


def test_l2_ctrl_c_is_no_traceback(shop: Shop) -> None:
    shop.enqueue(*[{"name": "many", "payload": n} for n in range(5000)])
    command = subprocess.Popen(
        [*TREADLE, "list", "--json"],
        cwd=shop.folder,
        env=environment(TREADLE_STORE=shop.url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None
    command.stdout.read(10)
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=DEADLINE)
    assert (command.returncode, errors.strip()) == (130, b"")


def test_l3_a_listing_that_fails_half_way_says_so(treadle: Run, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle.core.errors import StoreUnavailable
    from treadle.engine.operations import FIRST_PAGE
    from treadle.stores.sqlite import SQLiteStore

    shop.enqueue(*[{"name": "many"} for _ in range(600)])
    find = SQLiteStore.find

    async def broken(self: SQLiteStore, *arguments: object, before: str | None = None, **options: object) -> object:
        if before is not None:
            raise StoreUnavailable("the store went away")
        return await find(self, *arguments, before=before, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(SQLiteStore, "find", broken)
    result = treadle("list", "--json", "--store", shop.url)
    assert result.failed_in_one_line() == "treadle: the store went away"
    assert result.stdout.count(b"\n") in (FIRST_PAGE - 1, FIRST_PAGE)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_l8_tables_fit_the_terminal(treadle: Run, stocked: Shop, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    stocked.enqueue({"name": "a-rather-long-name-" * 5}, *[{"name": "日本語の長い名前" * 10, "delay": 60}] * 2)
    monkeypatch.setenv("COLUMNS", str(width))
    listed = treadle("list", "--store", stocked.url).out
    for job in stocked.ids.values():
        assert job in listed  # an id is never cut: it is there to be copied
    for line in listed.splitlines() + treadle("stats", "--store", stocked.url).out.splitlines():
        assert columns(line) <= width, line


def test_l8_text_from_jobs_cannot_steer_the_terminal(treadle: Run, shop: Shop) -> None:
    (job,) = shop.enqueue({"name": "evil\x1b[2J\n\u202ename", "payload": "\x1b]0;x\x07\u202e"})
    for arguments in (["list"], ["show", job]):
        out = treadle(*arguments, "--store", shop.url).out
        assert "\x1b" not in out and "\u202e" not in out and "\\x1b[2J" in out


def on_terminal(shop: Shop, *arguments: str, **changes: str) -> str:
    """What a person sees who runs the command."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*TREADLE, *arguments], cwd=shop.folder, stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment(TREADLE_STORE=shop.url, TERM="xterm", **changes),
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + DEADLINE
    try:
        while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other side has closed
                break
            if not data:
                break
            seen += data
        assert process.wait(DEADLINE) == 0
    finally:
        os.close(ours)
    return seen.decode()


def test_l8_colour_only_on_a_terminal_and_not_where_it_is_not_wanted(treadle: Run, stocked: Shop) -> None:
    red = "\x1b[31mdead"
    assert red in on_terminal(stocked, "list")
    assert "\x1b[31mdead" in on_terminal(stocked, "show", stocked.ids["dead"])
    assert "\x1b" not in on_terminal(stocked, "list", NO_COLOR="1")
    assert "\x1b" not in on_terminal(stocked, "list", "--json")
    assert b"\x1b" not in treadle("list", "--store", stocked.url).stdout


def test_l8_a_pipe_is_not_fitted(treadle: Run, shop: Shop) -> None:
    name = "a-rather-long-name-" * 6
    shop.enqueue({"name": name})
    assert name in treadle("list", "--store", shop.url).out


def test_l3_running_jobs_are_shown_with_how_long_they_run(treadle: Run, shop: Shop, tmp_path: Path) -> None:
    import asyncio

    from treadle import open_store
    from treadle.core.store import Demand

    (job,) = shop.enqueue({"name": "long"})

    async def claim() -> None:
        store = open_store(shop.url)
        await store.claim("token", [Demand(1)], worker="someone:1", lease=600.0)
        await store.close()

    asyncio.run(claim())
    row = treadle("list", "--status", "running", "--store", shop.url).out.splitlines()[1]
    assert re.search(r"running +long +for \d+ m?s +1/5 +" + job, row)
    shown = treadle("show", job, "--json", "--store", shop.url).json
    assert shown["worker"] == "someone:1"
    until = datetime.fromisoformat(shown["lease_until"])
    assert timedelta(0) < until - datetime.now(UTC) <= timedelta(seconds=600)
