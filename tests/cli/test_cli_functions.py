"""L11, F1: `treadle functions`, its words and refusals, and that running services go by what it changes."""

from __future__ import annotations

import hashlib
import hmac
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import Result, Run, spawn, summaries_are_first_sentences
from serving import Call, Served, Services, services, until
from tests.servers import postgres, valkey

from treadle.cli.commands.functions import COMMANDS, command

STORE = ("--store", "sqlite:jobs.db")
URL = "http://127.0.0.1:9"
FIELDS = ["name", "url", "active", "method", "fail_on", "concurrency"]
BAD_NAMES = ("", "Upper", "a_b", "a--b", "-a", "a-", "a b", "é", "jobs", "cron", "a" * 65, "../x", "a/b", "a.b")
BAD_URLS = (
    "", "x", "ftp://h", "http://", "http://h:0", "http://h:x", "http://h/?q=1", "http://h/#f", "http://u:secret@h",
    "http://a b",
    "//h", "file:///x", "http://h/" + "p" * 2000,
)  # fmt: skip
BAD = (
    [],
    ["frobnicate"],
    ["list", "surplus"],
    ["list", "--frobnicate"],
    ["add"],
    ["add", "x"],
    ["add", "x", URL, "surplus"],
    *(["add", name, URL] for name in BAD_NAMES),
    *(["add", "x", url] for url in BAD_URLS),
    *(["add", "x", URL, "--method", method] for method in ("", "GET", "job", "PUT")),
    *(["add", "x", URL, "--fail-on", text] for text in ("", ">=", "500x", ">=600", "5", "500-400", ">400-500", "x" * 201)),
    *(["add", "x", URL, "--concurrency", number] for number in ("0", "-1", "10001", "1.5", "x", "")),
    *([change, *names] for change in ("remove", "activate", "deactivate", "secret") for names in ([], ["a", "b"], ["Upper"])),
    ["add", "x", URL, "--store", "memory:"],
    ["list", "--store", "nonsense"],
)


@pytest.mark.parametrize("arguments", BAD, ids=lambda arguments: " ".join(arguments)[:60] or "nothing")
def test_l2_bad_arguments_are_usage_errors_and_touch_nothing(treadle: Run, tmp_path: Path, arguments: list[str]) -> None:
    text = treadle("functions", *arguments).refused_as_usage()
    assert "secret@" not in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "list", "add", "remove", "activate", "deactivate", "secret"])
def test_l2_help_goes_to_stdout(treadle: Run, tmp_path: Path, name: str) -> None:
    result = treadle("functions", *([name] if name else []), "--help")
    assert (result.code, result.stderr) == (0, b"")
    assert result.out.startswith(f"Usage: treadle functions {name}".rstrip()) and result.stdout.isascii()
    assert list(tmp_path.iterdir()) == []


def test_l1_each_listed_summary_is_the_first_sentence_of_the_command() -> None:
    summaries_are_first_sentences(command, COMMANDS)


def test_l2_the_real_process_says_the_same(tmp_path: Path) -> None:
    spawn("functions", cwd=tmp_path).refused_as_usage()
    assert "'A'" in spawn("functions", "add", "A", URL, cwd=tmp_path).refused_as_usage()
    assert "sqlite:data/tasks.db" in spawn("functions", "list", cwd=tmp_path).failed_in_one_line()
    assert spawn("functions", "add", "x", URL, cwd=tmp_path).code == 0
    assert (tmp_path / "data/tasks.db").exists()
    assert len(spawn("functions", "list", cwd=tmp_path).out.splitlines()) == 2


@pytest.mark.parametrize("arguments", [["list"], ["remove", "x"], ["secret", "x"]], ids=" ".join)
def test_l2_reading_where_no_file_is_fails_and_makes_none(treadle: Run, tmp_path: Path, arguments: list[str]) -> None:
    result = treadle("functions", *arguments, *STORE)
    assert "there is no store at sqlite:jobs.db" in result.failed_in_one_line() and result.stdout == b""
    assert list(tmp_path.iterdir()) == []


def test_l11_add_prints_the_function_and_its_secret_once_and_keeps_both_through_a_change(treadle: Run) -> None:
    treadle("migrate", *STORE)
    first = treadle("functions", "add", "send-report", f"{URL}/", *STORE)
    assert (first.code, first.stderr) == (0, b"")
    where, secret = first.out.splitlines()
    assert where == f"send-report is at {URL}" and secret.startswith("secret: treadle_function_")
    added = treadle("functions", "add", "send-report", f"{URL}/v2", "--method", "POST", "--fail-on", "429, >=500",
                    "--concurrency", "3", "--json", *STORE).json  # fmt: skip
    assert added == {
        "name": "send-report", "url": f"{URL}/v2", "active": True, "method": "POST", "fail_on": "429, >=500",
        "concurrency": 3, "secret": secret.removeprefix("secret: "),
    }  # fmt: skip
    treadle("functions", "deactivate", "send-report", *STORE)
    again = treadle("functions", "add", "send-report", URL, *STORE)
    assert again.out.splitlines() == [f"send-report is at {URL}, and inactive", secret]
    assert treadle("functions", "secret", "send-report", *STORE).out == secret.removeprefix("secret: ") + "\n"


def test_l8_json_is_one_document_of_the_same_fields(treadle: Run) -> None:
    treadle("migrate", *STORE)
    assert treadle("functions", "list", *STORE).out == "No functions.\n"
    assert treadle("functions", "list", "--json", *STORE).json == []
    for name in ("beta", "alpha"):
        assert list(treadle("functions", "add", name, URL, "--json", *STORE).json) == [*FIELDS, "secret"]
    listed = treadle("functions", "list", "--json", *STORE).json
    assert [list(one) for one in listed] == [FIELDS, FIELDS] and [one["name"] for one in listed] == ["alpha", "beta"]
    assert listed[0] | {"active": False} == treadle("functions", "deactivate", "alpha", "--json", *STORE).json
    assert listed[0] == treadle("functions", "activate", "alpha", "--json", *STORE).json
    before = treadle("functions", "secret", "alpha", "--json", *STORE).json
    after = treadle("functions", "secret", "alpha", "--rotate", "--json", *STORE).json
    assert list(before) == ["name", "secret"] and before["secret"] != after["secret"]
    assert treadle("functions", "remove", "alpha", "--json", *STORE).json == {"removed": "alpha"}
    assert [one["name"] for one in treadle("functions", "list", "--json", *STORE).json] == ["beta"]


def test_l8_the_list_is_a_table_without_secrets_that_fits(treadle: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = treadle("functions", "add", "a", f"{URL}/{'p' * 80}", "--fail-on", ">=500", "--json", *STORE).json["secret"]
    treadle("functions", "deactivate", "a", *STORE)
    result = treadle("functions", "list", *STORE)
    heading, row = result.out.splitlines()
    assert heading.split() == ["NAME", "STATE", "PLACE", "METHOD", "FAILS", "ON"]
    assert row.split() == ["a", "inactive", f"{URL}/{'p' * 80}", "JOB", ">=500"]
    assert secret not in result.out
    monkeypatch.setenv("COLUMNS", "50")
    assert max(map(len, treadle("functions", "list", *STORE).out.splitlines())) <= 50


@pytest.mark.parametrize("change", ["remove", "activate", "deactivate", "secret"])
def test_l2_an_unknown_function_is_one_line_and_exit_code_1(treadle: Run, change: str) -> None:
    treadle("migrate", *STORE)
    result = treadle("functions", change, "ghost", *STORE)
    assert "'ghost'" in result.failed_in_one_line() and result.stdout == b""


@pytest.mark.parametrize("arguments", [["list"], ["add", "x", URL], ["remove", "x"], ["secret", "x"]], ids=" ".join)
def test_l2_a_store_that_cannot_be_reached_is_one_line(treadle: Run, arguments: list[str]) -> None:
    for store in ("postgres://127.0.0.1:1/x", "redis://127.0.0.1:1/0", "sqlite:/proc/x/y.db"):
        assert treadle("functions", *arguments, "--store", store).failed_in_one_line()


def test_f1_what_is_in_the_functions_folder_is_listed_and_can_be_switched_off_but_not_removed(
    treadle: Run, tmp_path: Path
) -> None:
    for name in ("hello", "Wrong Name", "nothing"):
        (tmp_path / "there" / name).mkdir(parents=True)
    (tmp_path / "there/hello/main.py").write_text("async def handle(request): ...")
    (tmp_path / "there/Wrong Name/main.py").write_text("")
    folder = ("--functions", "there", *STORE)
    assert "hello" in treadle("functions", "deactivate", "hello", *STORE).failed_in_one_line()  # no such folder here
    listed = treadle("functions", "list", *folder)
    assert listed.out.splitlines()[1].split() == ["hello", "active", "there/hello", "JOB"]
    assert [line.partition(" the folder ")[0] for line in listed.err.splitlines()] == ["treadle: ignoring"] * 2
    assert treadle("functions", "list", "--json", *folder).json == [
        {"name": "hello", "url": None, "active": True, "method": "JOB", "fail_on": None, "concurrency": None}
    ]
    assert treadle("functions", "deactivate", "hello", *folder).out == "Deactivated hello\n"
    assert "take there/hello away" in treadle("functions", "remove", "hello", *folder).failed_in_one_line()
    assert treadle("functions", "list", "--json", *folder).json[0]["active"] is False
    assert treadle("functions", "activate", "hello", *folder).out == "Activated hello\n"
    secret = treadle("functions", "secret", "hello", *folder).out
    assert secret == treadle("functions", "secret", "hello", *folder).out != ""
    treadle("functions", "add", "hello", URL, *STORE)  # by URL stands before the folder
    assert treadle("functions", "list", "--json", *folder).json[0]["url"] == URL
    assert treadle("functions", "remove", "hello", *folder).out == "Removed hello\n"
    assert treadle("functions", "list", "--json", *folder).json[0]["url"] is None


# -- seen by a running service


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services on SQLite of which one runs all the time: the changes must reach it."""
    folder = tmp_path_factory.mktemp("functions")
    with services(f"sqlite:{folder}/jobs.db", folder) as one:
        one.program("hello", "async def handle(request): return 'hello'")
        one.start(JOB_RETRY_DELAY_SECS="0.05", JOB_MAX_RETRIES="100")
        yield one
        assert one.all[0].process.poll() is None
        one.all[0].stop()
        assert one.all[0].lines()


def outcome(served: Served, name: str) -> tuple[str, str | None]:
    """What becomes of a job of the function that has one attempt."""
    job = served.until(served.enqueue(name, {"a": 1}, max_attempts=1), "completed", "dead")
    return job["status"], job["error"]


def becomes(served: Served, name: str, status: str, error: str | None = None) -> None:
    """Wait until jobs of the function end so. It takes the service about a second to notice a change."""
    until(lambda: outcome(served, name) == (status, error), f"jobs of {name} are {status} ({error})", 15, served.logged)


def test_l11_a_function_that_is_added_is_called_and_one_that_is_removed_is_not(running: Services) -> None:
    (served,) = running.all
    id = served.enqueue("added")
    failed = served.until(id, "pending", attempts=1)
    assert failed["error"] == "Function 'added' not found"
    running.register("added")
    assert served.until(id, "completed")["attempts"] >= 2
    assert {call.method for call in running.functions.of("added")} == {"JOB"}
    running.treadle("functions", "remove", "added")
    becomes(served, "added", "dead", "Function 'added' not found")


def test_l11_a_function_that_is_deactivated_is_called_no_more_until_it_is_activated(running: Services) -> None:
    (served,) = running.all
    running.register("paused")
    becomes(served, "paused", "completed")
    running.treadle("functions", "deactivate", "paused")
    becomes(served, "paused", "dead", "Function 'paused' is inactive")
    calls = len(running.functions.of("paused"))
    assert outcome(served, "paused")[0] == "dead" and len(running.functions.of("paused")) == calls
    running.treadle("functions", "activate", "paused")
    becomes(served, "paused", "completed")


def test_l11_a_function_of_the_folder_can_be_switched_off_too(running: Services) -> None:
    (served,) = running.all
    becomes(served, "hello", "completed")
    running.treadle("functions", "deactivate", "hello")
    becomes(served, "hello", "dead", "Function 'hello' is inactive")
    running.treadle("functions", "activate", "hello")
    becomes(served, "hello", "completed")


def test_l11_method_fail_on_and_url_are_changed_while_it_runs(running: Services) -> None:
    (served,) = running.all
    running.functions.answering["strict"] = lambda call: 503
    running.register("strict")
    becomes(served, "strict", "completed")
    running.register("strict", "--fail-on", ">=500")
    becomes(served, "strict", "dead", "Function 'strict' answered 503, a failure by its fail_on '>=500'")
    running.register("strict", "--method", "POST")
    becomes(served, "strict", "completed")
    assert running.functions.of("strict")[-1].method == "POST"
    running.treadle("functions", "add", "strict", running.functions.url("elsewhere"))
    until(lambda: outcome(served, "strict") and running.functions.of("elsewhere"), "the other place is called", 15)
    assert running.functions.of("elsewhere")[-1].method == "JOB"


def test_f4_calls_are_signed_with_the_secret_that_is_rotated_while_it_runs(running: Services) -> None:
    (served,) = running.all

    def signed_with(secret: str, call: Call) -> bool:
        expected = hmac.new(secret.encode(), call.id.encode() + b"." + call.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(call.headers["x-treadle-signature"], f"sha256={expected}")

    running.register("signed")
    before = running.treadle("functions", "secret", "signed")["secret"]
    becomes(served, "signed", "completed")
    assert all(signed_with(before, call) for call in running.functions.of("signed"))
    after = running.treadle("functions", "secret", "signed", "--rotate")["secret"]
    until(lambda: outcome(served, "signed") and signed_with(after, running.functions.of("signed")[-1]), "the new one", 15)
    assert json.loads(running.functions.of("signed")[-1].body) == {"a": 1}


@pytest.mark.parametrize("kind", ["postgres", "valkey"])
def test_l11_on_other_stores_too(tmp_path: Path, kind: str) -> None:
    if kind == "postgres":
        server = postgres.shared_server()
        store = server.url_of(server.fresh_database())
        spawn("migrate", "--store", store, cwd=tmp_path)
    else:
        store = f"{valkey.shared().url}?prefix={valkey.shared().fresh_prefix()}"
    with services(store, tmp_path) as one:
        served = one.start(JOB_RETRY_DELAY_SECS="0.05", JOB_MAX_RETRIES="100")
        id = served.enqueue("added")
        served.until(id, "pending", attempts=1)
        one.register("added")
        served.until(id, "completed")
        one.treadle("functions", "deactivate", "added")
        becomes(served, "added", "dead", "Function 'added' is inactive")
        one.treadle("functions", "remove", "added")
        becomes(served, "added", "dead", "Function 'added' not found")
        served.signal(signal.SIGTERM)
        assert served.ended() == 0


def test_l2_of_two_who_change_the_same_function_both_succeed(tmp_path: Path) -> None:
    """Changes of one document are made one after the other, whoever makes them."""
    from concurrent.futures import ThreadPoolExecutor

    spawn("functions", "add", "x", URL, *STORE, cwd=tmp_path)

    def change(number: int) -> Result:
        return spawn("functions", ("deactivate", "activate")[number % 2], "x", *STORE, cwd=tmp_path)

    with ThreadPoolExecutor(4) as pool:
        assert [result.code for result in pool.map(change, range(4))] == [0] * 4
