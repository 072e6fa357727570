"""L11, F6, F8: `treadle config`, its words and refusals, and that running services go by what it changes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from runs import Run, spawn, summaries_are_first_sentences
from serving import Served, Services, services, until
from tests.servers import postgres, valkey

from treadle.cli.commands.config import COMMANDS, command

STORE = ("--store", "sqlite:jobs.db")
DEFAULTS = {
    "JOB_RETRY_DELAY_SECS": 5, "JOB_MAX_RETRIES": 3, "JOB_LEASE_SECS": 450, "JOB_TIMEOUT_SECS": 400,
    "JOB_RETENTION_DAYS": 14, "METRICS": "open", "MAX_PAYLOAD_BYTES": 1048576,
}  # fmt: skip
BAD_VALUES = {
    "JOB_RETRY_DELAY_SECS": ("-1", "x", "", "1e3", "٣", "1_0", "nan", "inf", "2592001", "+1"),
    "JOB_MAX_RETRIES": ("0", "101", "1.5", "x", "-3"),
    "JOB_LEASE_SECS": ("0", "-1", "x"),
    "JOB_TIMEOUT_SECS": ("0", "x", "0x10"),
    "JOB_RETENTION_DAYS": ("0", "-1", "36501"),
    "METRICS": ("closed", "", "OPEN", "1"),
    "MAX_PAYLOAD_BYTES": ("0", "1.5", "1073741825"),
}
BAD = (
    [],
    ["frobnicate"],
    ["get", "NOPE"],
    ["get", "job_max_retries"],
    ["get", "METRICS", "surplus"],
    ["set"],
    ["set", "METRICS"],
    ["set", "NOPE", "1"],
    ["set", "METRICS", "open", "surplus"],
    *(["set", key, "--", value] for key, values in BAD_VALUES.items() for value in values),
    ["unset"],
    ["unset", "NOPE"],
    ["rotate-key"],
    ["rotate-key", "boss"],
    ["rotate-key", "anon", "admin"],
    ["user-token"],
    ["user-token", ""],
    ["user-token", " ada"],
    ["user-token", "ädä"],
    ["user-token", "u" * 256],
    ["user-token", "ada", "--role", "service_role"],
    *(["user-token", "ada", "--expires-in", life] for life in ("5", "0s", "", "-1h", "100001d")),
    ["get", "--store", "memory:"],
)


@pytest.mark.parametrize("arguments", BAD, ids=lambda arguments: " ".join(arguments)[:60] or "nothing")
def test_l2_bad_arguments_are_usage_errors_and_touch_nothing(treadle: Run, tmp_path: Path, arguments: list[str]) -> None:
    treadle("config", *arguments).refused_as_usage()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "get", "set", "unset", "rotate-key", "user-token"])
def test_l2_help_goes_to_stdout(treadle: Run, tmp_path: Path, name: str) -> None:
    result = treadle("config", *([name] if name else []), "--help")
    assert (result.code, result.stderr) == (0, b"")
    assert result.out.startswith(f"Usage: treadle config {name}".rstrip()) and result.stdout.isascii()
    assert list(tmp_path.iterdir()) == []


def test_l1_each_listed_summary_is_the_first_sentence_of_the_command() -> None:
    summaries_are_first_sentences(command, COMMANDS)


def test_l2_the_real_process_says_the_same(tmp_path: Path) -> None:
    spawn("config", cwd=tmp_path).refused_as_usage()
    assert "JOB_MAX_RETRIES" in spawn("config", "set", "JOB_MAX_RETRIES", "0", cwd=tmp_path).refused_as_usage()
    assert spawn("config", "set", "JOB_MAX_RETRIES", "4", cwd=tmp_path).out == "JOB_MAX_RETRIES=4 (stored)\n"
    assert spawn("config", "get", "JOB_MAX_RETRIES", cwd=tmp_path).out == "4\n"
    assert (tmp_path / "data/tasks.db").exists()


@pytest.mark.parametrize("arguments", [["get"], ["get", "METRICS"], ["unset", "METRICS"]], ids=" ".join)
def test_l2_reading_where_no_file_is_fails_and_makes_none(treadle: Run, tmp_path: Path, arguments: list[str]) -> None:
    result = treadle("config", *arguments, *STORE)
    assert "there is no store at sqlite:jobs.db" in result.failed_in_one_line() and result.stdout == b""
    assert list(tmp_path.iterdir()) == []


def test_l11_every_setting_has_its_default_until_it_is_set_and_again_when_it_is_unset(treadle: Run) -> None:
    treadle("migrate", *STORE)
    listed = treadle("config", "get", "--json", *STORE).json
    assert {one["name"]: one["value"] for one in listed} == DEFAULTS
    assert {one["source"] for one in listed} == {"default"}
    assert list(listed[0]) == ["name", "value", "source", "problem"]
    kept = {"name": "JOB_RETRY_DELAY_SECS", "value": 0.5, "source": "stored", "problem": None}
    assert treadle("config", "set", "JOB_RETRY_DELAY_SECS", "0.5", "--json", *STORE).json == kept
    assert treadle("config", "get", "JOB_RETRY_DELAY_SECS", "--json", *STORE).json == kept
    assert treadle("config", "unset", "JOB_RETRY_DELAY_SECS", "--json", *STORE).json == kept | {"value": 5, "source": "default"}
    assert treadle("config", "unset", "JOB_RETRY_DELAY_SECS", *STORE).out == "JOB_RETRY_DELAY_SECS=5 (default)\n"
    heading, *rows = treadle("config", "get", *STORE).out.splitlines()
    assert heading.split() == ["NAME", "VALUE", "FROM"]
    assert [row.split() for row in rows] == [[name, str(value), "default"] for name, value in DEFAULTS.items()]


def test_l11_the_environment_holds_over_what_is_stored_and_says_so(treadle: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_MAX_RETRIES", "7")
    assert treadle("config", "set", "JOB_MAX_RETRIES", "4", *STORE).out == "JOB_MAX_RETRIES=7 (environment)\n"
    monkeypatch.setenv("TREADLE_JOB_MAX_RETRIES", "8")  # the longer name is the surer one
    assert treadle("config", "get", "JOB_MAX_RETRIES", *STORE).out == "8\n"
    monkeypatch.setenv("TREADLE_JOB_MAX_RETRIES", "many")
    found = treadle("config", "get", "JOB_MAX_RETRIES", "--json", *STORE).json
    assert found["value"] == "many" and "JOB_MAX_RETRIES must be" in found["problem"]
    assert "from the environment" in treadle("config", "get", *STORE).out
    monkeypatch.delenv("TREADLE_JOB_MAX_RETRIES")
    monkeypatch.delenv("JOB_MAX_RETRIES")
    assert treadle("config", "get", "JOB_MAX_RETRIES", *STORE).out == "4\n"


def test_f7_a_time_limit_that_is_not_less_than_the_lease_is_refused_with_both_names(treadle: Run) -> None:
    for key, value in (("JOB_TIMEOUT_SECS", "450"), ("JOB_LEASE_SECS", "400")):
        reason = treadle("config", "set", key, value, *STORE).failed_in_one_line()
        assert "JOB_TIMEOUT_SECS" in reason and "JOB_LEASE_SECS" in reason
    assert treadle("config", "set", "JOB_LEASE_SECS", "1000", *STORE).code == 0
    assert treadle("config", "set", "JOB_TIMEOUT_SECS", "450", *STORE).code == 0
    assert "JOB_TIMEOUT_SECS" in treadle("config", "unset", "JOB_LEASE_SECS", *STORE).failed_in_one_line()


def test_f8_a_rotated_key_is_printed_once_and_is_new_each_time(treadle: Run) -> None:
    treadle("migrate", *STORE)
    for name in ("service_role", "anon", "admin", "signing"):
        first = treadle("config", "rotate-key", name, *STORE)
        again = treadle("config", "rotate-key", name, "--json", *STORE).json
        assert re.fullmatch(rf"treadle_{name}_[\w-]{{43}}\n", first.out) and first.stderr == b""
        assert list(again) == ["name", "key"] and again["name"] == name and again["key"] != first.out.strip()


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "rotate-key", "anon"], ["config", "user-token", "ada"], ["config", "set", "METRICS", "open"],
        ["functions", "add", "report", "http://127.0.0.1:1"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_store_that_is_made_for_keys_and_secrets_is_told_of_and_its_owners_alone(
    treadle: Run, tmp_path: Path, arguments: list[str]
) -> None:
    """Whoever rotates a key in the wrong folder must not believe that it is done."""
    before = os.umask(0o022)
    try:
        first, again = (
            treadle(*arguments, "--store", "sqlite:new/jobs.db"),
            treadle(*arguments, "--store", "sqlite:new/jobs.db"),
        )
    finally:
        os.umask(before)
    assert (first.code, again.code) == (0, 0)
    assert first.stderr == b"treadle: there was no store at sqlite:new/jobs.db, so that it was made just now\n"
    assert again.stderr == b""
    assert (tmp_path / "new" / "jobs.db").stat().st_mode & 0o777 == 0o600


def test_f8_a_key_that_the_environment_gives_is_not_rotated(treadle: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_SERVICE_ROLE_KEY", "k" * 40)
    result = treadle("config", "rotate-key", "service_role", *STORE)
    assert "TREADLE_SERVICE_ROLE_KEY" in result.failed_in_one_line() and result.stdout == b""
    assert treadle("config", "rotate-key", "anon", *STORE).code == 0


def test_f8_a_user_token_is_a_jwt_of_that_user(treadle: Run) -> None:
    import jwt

    secret = treadle("config", "rotate-key", "signing", *STORE).out.strip()
    document = treadle("config", "user-token", "ada", "--role", "admin", "--expires-in", "2h", "--json", *STORE).json
    assert list(document) == ["sub", "role", "token"] and (document["sub"], document["role"]) == ("ada", "admin")
    claims = jwt.decode(document["token"], secret, algorithms=["HS256"])
    assert (claims["sub"], claims["role"]) == ("ada", "admin")
    plain = jwt.decode(treadle("config", "user-token", "ada", *STORE).out.strip(), secret, algorithms=["HS256"])
    assert plain["role"] == "user" and 3500 < claims["exp"] - plain["exp"] < 3700


@pytest.mark.parametrize(
    "arguments", [["get"], ["set", "METRICS", "open"], ["unset", "METRICS"], ["rotate-key", "anon"], ["user-token", "ada"]],
    ids=" ".join,
)  # fmt: skip
def test_l2_a_store_that_cannot_be_reached_is_one_line(treadle: Run, arguments: list[str]) -> None:
    for store in ("postgres://127.0.0.1:1/x", "redis://127.0.0.1:1/0", "sqlite:/proc/x/y.db"):
        result = treadle("config", *arguments, "--store", store)
        assert result.failed_in_one_line() and result.stdout == b""


# -- seen by a running service


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services on SQLite of which one runs all the time: the changes must reach it."""
    folder = tmp_path_factory.mktemp("config")
    with services(f"sqlite:{folder}/jobs.db", folder) as one:
        one.start()
        one.register("good")
        yield one
        one.all[0].stop()
        assert one.all[0].lines()


@pytest.fixture
def served(running: Services) -> Iterator[Served]:
    """The running service, by its defaults before and after the test."""
    yield running.all[0]
    for name in changed:
        running.treadle("config", "unset", name)
    changed.clear()


changed: set[str] = set()


def set_while_it_runs(running: Services, name: str, value: str) -> None:
    """Have a setting that holds until the end of the test."""
    changed.add(name)
    running.treadle("config", "set", name, value)


def soon(condition: Callable[[], Any], what: str, served: Served) -> Any:
    """It takes the service about a second to notice a change; these tests share their machine."""
    return until(condition, what, 15, served.logged)


def test_l11_the_delay_and_number_of_attempts_while_it_runs(running: Services, served: Served) -> None:
    id = served.enqueue("nobody")
    assert served.job(id)["max_attempts"] == 3
    served.until(id, "pending", attempts=1)
    set_while_it_runs(running, "JOB_RETRY_DELAY_SECS", "0.01")
    set_while_it_runs(running, "JOB_MAX_RETRIES", "2")
    soon(lambda: served.job(served.enqueue("good"))["max_attempts"] == 2, "two attempts for those who do not say", served)
    dead = served.until(served.enqueue("nobody"), "dead")
    assert (dead["attempts"], dead["max_attempts"]) == (2, 2)
    assert served.wait_for("failed at attempt 1 of 2, again in 0.01 s: Function 'nobody' not found")


def test_l11_the_time_limit_of_a_call_while_it_runs(running: Services, served: Served) -> None:
    held = running.functions.hold("slow")
    running.register("slow")
    set_while_it_runs(running, "JOB_TIMEOUT_SECS", "0.2")
    try:
        soon(lambda: limited(served), "the limit is in force", served)
    finally:
        held.set()


def limited(served: Served) -> bool:
    """Whether a job that is never answered fails after 0.2 s."""
    id = served.enqueue("slow", max_attempts=1)
    try:
        error: str = served.until(id, "dead", seconds=2)["error"]
    except AssertionError:
        return False  # it was begun under the limit before
    return error.startswith("Function 'slow' timed out after 0.2 s")


def test_l11_how_long_completed_jobs_are_kept_while_it_runs(running: Services, served: Served) -> None:
    id = served.enqueue("good")
    served.until(id, "completed")
    dead = served.enqueue("nobody", max_attempts=1)
    served.until(dead, "dead")
    set_while_it_runs(running, "JOB_RETENTION_DAYS", "0.000001")
    soon(lambda: served.answer("GET", f"/v1/functions/jobs/{id}")[0] == 404, "the completed job is deleted", served)
    assert served.job(dead)["status"] == "dead"


def test_l11_whether_the_metrics_are_open_while_it_runs(running: Services, served: Served) -> None:
    assert served.status("/metrics") == 200
    set_while_it_runs(running, "METRICS", "keyed")
    soon(lambda: served.status("/metrics") == 401, "they want a key", served)
    statuses = {role: served.status("/metrics", role) for role in ("anon", "service_role", "admin", "wrong")}
    assert statuses == {"anon": 403, "service_role": 200, "admin": 200, "wrong": 401}
    running.treadle("config", "unset", "METRICS")
    soon(lambda: served.status("/metrics") == 200, "they are open again", served)


def test_l11_the_largest_payload_while_it_runs(running: Services, served: Served) -> None:
    served.enqueue("good", "x" * 200)
    set_while_it_runs(running, "MAX_PAYLOAD_BYTES", "100")
    path, body = "/v1/functions/good/jobs", {"payload": "x" * 200}
    soon(lambda: served.answer("POST", path, body)[0] == 413, "it is too large now", served)
    served.enqueue("good", "x" * 90)


def test_f8_a_rotated_key_is_taken_and_the_old_one_refused_while_it_runs(running: Services, served: Served) -> None:
    jobs = "/v1/functions/jobs"
    for name, allowed in (("service_role", 200), ("anon", 403)):
        old = running.keys[name]
        assert served.status(jobs, old) == allowed
        new = running.keys[name] = running.treadle("config", "rotate-key", name)["key"]
        assert served.status(jobs, new) == allowed, "a new key is taken at once"
        soon(lambda old=old: served.status(jobs, old) == 401, "the old key is refused", served)
        assert served.status(jobs, new) == allowed


def test_f8_a_token_of_the_command_is_a_user_until_its_secret_is_rotated(running: Services, served: Served) -> None:
    token = running.treadle("config", "user-token", "ada", "--role", "admin")["token"]

    def invoked(token: str) -> int:
        return served.answer("GET", "/v1/functions/good/invoke/x", key=None, authorization=f"Bearer {token}")[0]

    assert invoked(token) == 200
    headers = running.functions.of("good")[-1].headers
    assert (headers["x-treadle-role"], headers["x-treadle-user-id"]) == ("admin", "ada")
    running.treadle("config", "rotate-key", "signing")
    soon(lambda: invoked(token) == 401, "the old token is refused", served)
    assert invoked(running.treadle("config", "user-token", "bob")["token"]) == 200
    assert running.functions.of("good")[-1].headers["x-treadle-user-id"] == "bob"


def test_f8_what_the_environment_of_a_service_gives_holds_over_what_is_stored(tmp_path: Path) -> None:
    with services(f"sqlite:{tmp_path}/jobs.db", tmp_path) as one:
        stored = one.treadle("config", "rotate-key", "service_role")["key"]
        given = "a-key-of-my-own-that-is-long-enough"
        one.keys["service_role"] = given
        one.treadle("config", "set", "JOB_MAX_RETRIES", "2")
        served = one.start(TREADLE_SERVICE_ROLE_KEY=given, TREADLE_JOB_MAX_RETRIES="7")
        assert sorted(served.started["keys"]) == ["admin", "anon"]
        assert served.job(served.enqueue("any"))["max_attempts"] == 7
        assert served.status("/v1/functions/jobs", stored) == 401
        one.treadle("config", "set", "METRICS", "keyed")
        soon(lambda: served.status("/metrics") == 401, "what is not given follows the store", served)
        assert served.job(served.enqueue("any"))["max_attempts"] == 7
        assert given not in served.logged()
        served.stop()


@pytest.mark.parametrize("kind", ["postgres", "valkey"])
def test_l11_on_other_stores_too(tmp_path: Path, kind: str) -> None:
    if kind == "postgres":
        server = postgres.shared_server()
        store = server.url_of(server.fresh_database())
        spawn("migrate", "--store", store, cwd=tmp_path)
    else:
        store = f"{valkey.shared().url}?prefix={valkey.shared().fresh_prefix()}"
    with services(store, tmp_path) as one:
        served = one.start()
        one.treadle("config", "set", "JOB_MAX_RETRIES", "9")
        soon(lambda: served.job(served.enqueue("any"))["max_attempts"] == 9, "the setting is followed", served)
        old, new = one.keys["service_role"], one.treadle("config", "rotate-key", "service_role")["key"]
        one.keys["service_role"] = new
        soon(lambda: served.status("/v1/functions/jobs", old) == 401, "the old key is refused", served)
        assert served.status("/v1/functions/jobs", new) == 200
        token = one.treadle("config", "user-token", "ada")["token"]
        assert served.answer("GET", "/v1/functions/jobs", key=None, authorization=f"Bearer {token}")[0] == 403
        assert one.treadle("config", "get", "JOB_MAX_RETRIES")["source"] == "stored"
        served.stop()
