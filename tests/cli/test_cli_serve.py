"""L11: `treadle serve` as a real process: how it starts, what it prints where, and what each role does."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import DEADLINE, Run, spawn
from serving import TREADLE, Served, Services, environment, services, until
from tests.servers import postgres

BAD = (
    ["surplus"],
    ["--frobnicate"],
    *(["--port", port] for port in ("-1", "65536", "x", "", "80.0", "٣")),
    *(["--role", role] for role in ("", "boss", "API", "api,worker")),
    *(["--concurrency", number] for number in ("0", "-1", "100001", "x")),
    *(["--grace", time] for time in ("5", "", "-1s", "1w")),
    ["--log-level", "loud"],
    ["--log-format", "xml"],
    *(["--store", store] for store in ("memory:", "MEMORY:", "sqlite::memory:", "nonsense", "", "ftp://x", "sqlite:x?a=b")),
)


@pytest.mark.parametrize("arguments", BAD, ids=lambda arguments: " ".join(arguments)[:60])
def test_l2_bad_arguments_are_usage_errors_and_touch_nothing(treadle: Run, tmp_path: Path, arguments: list[str]) -> None:
    treadle("serve", *arguments).refused_as_usage()
    assert list(tmp_path.iterdir()) == []


def test_l2_the_real_process_says_the_same(tmp_path: Path) -> None:
    spawn("serve", "--role", "boss", cwd=tmp_path).refused_as_usage()
    assert "memory:" in spawn("serve", cwd=tmp_path, TREADLE_STORE="memory:").refused_as_usage()
    assert list(tmp_path.iterdir()) == []


def test_f1_a_folder_that_was_named_and_is_not_there_is_told(tmp_path: Path) -> None:
    for arguments, told in (((), False), (("--functions", "fuctions"), True)):
        with subprocess.Popen(
            [TREADLE, "serve", "--port", "0", *arguments],
            cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stdout.readline()
            process.terminate()
            assert ("there is no folder fuctions" in process.communicate(timeout=DEADLINE)[1]) is told


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Services]:
    with services("sqlite:data/tasks.db", tmp_path) as found:
        yield found


# -- starting


def said_by(folder: Path, *arguments: str, lines: int) -> list[str]:
    """The first lines on standard output of a service that is then stopped."""
    process = subprocess.Popen(
        [TREADLE, "serve", "--port", "0", *arguments],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    said = [process.stdout.readline().rstrip("\n") for _ in range(lines)]
    process.terminate()
    rest, _ = process.communicate(timeout=DEADLINE)
    assert (process.returncode, rest) == (0, "")
    return said


def test_l11_the_first_start_makes_the_store_and_prints_the_url_and_the_keys_and_the_second_no_keys(tmp_path: Path) -> None:
    """In a folder of its own, `treadle serve` alone is enough (F8)."""
    beginning, explained, *keys = said_by(tmp_path, lines=5)
    assert re.fullmatch(
        r"treadle \S+ serves functions at http://127\.0\.0\.1:\d+: API, scheduler and worker, on sqlite:data/tasks\.db",
        beginning,
    )
    assert "shown this once" in explained
    made = dict(line.split() for line in keys)
    assert [*made] == ["service_role", "anon", "admin"] and len(set(made.values())) == 3
    assert all(re.fullmatch(rf"treadle_{role}_[\w-]{{43}}", key) for role, key in made.items())
    assert (tmp_path / "data/tasks.db").exists()
    (second,) = said_by(tmp_path, "--json", lines=1)
    document = json.loads(second)
    assert list(document) == ["url", "role", "store", "keys"]
    assert (document["role"], document["store"], document["keys"]) == ("all", "sqlite:data/tasks.db", {})
    for file in (tmp_path / "data").iterdir():
        assert not any(key.encode() in file.read_bytes() for key in made.values()), "only their hashes are kept"


def test_l8_with_json_it_prints_one_document_and_answers_with_its_keys(one: Services) -> None:
    served = one.start()
    assert list(served.started) == ["url", "role", "store", "keys"]
    assert sorted(served.started["keys"]) == ["admin", "anon", "service_role"]
    assert (served.status("/healthz"), served.status("/readyz")) == (200, 200)
    statuses = {key: served.status("/v1/functions/jobs", key) for key in ("service_role", "anon", "wrong", None)}
    assert statuses == {"service_role": 200, "anon": 403, "wrong": 401, None: 401}
    served.stop()
    assert not any(key in served.logged() for key in one.keys.values()), "keys are never logged"


def test_l2_a_port_that_is_taken_is_one_line_and_no_key_is_lost_by_it(one: Services) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = spawn("serve", "--port", port, cwd=one.folder)
        (line,) = map(json.loads, result.err.splitlines())
        assert (result.code, result.stdout, line["level"]) == (1, b"", "error")
        assert f"cannot listen on 127.0.0.1:{port}" in line["message"]
    assert sorted(one.start().started["keys"]) == ["admin", "anon", "service_role"]


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        ("postgres://127.0.0.1:1/x", "cannot connect to Postgres at 127.0.0.1:1/x"),
        ("redis://127.0.0.1:1/0", "Redis at 127.0.0.1:1 cannot be reached"),
        ("sqlite:text.db", "text.db"),
    ],
)
def test_l2_a_store_that_cannot_be_used_is_one_line(tmp_path: Path, store: str, reason: str) -> None:
    (tmp_path / "text.db").write_text("this is no database\n" * 500)
    result = spawn("serve", "--port", "0", "--log-format", "text", "--store", store, cwd=tmp_path)
    assert reason in result.failed_in_one_line() and result.stdout == b""


def test_s1_postgres_without_tables_is_refused_with_what_to_do_and_taken_once_that_is_done(tmp_path: Path) -> None:
    server = postgres.shared_server()
    with services(server.url_of(server.fresh_database()), tmp_path) as one:
        result = spawn("serve", "--port", "0", "--log-format", "text", "--store", one.store, cwd=tmp_path)
        assert "treadle migrate" in result.failed_in_one_line() and result.stdout == b""
        one.treadle("migrate")
        served = one.start()
        assert sorted(served.started["keys"]) == ["admin", "anon", "service_role"]
        served.stop()


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ({}, {"JOB_TIMEOUT_SECS": "450"}),
        ({"JOB_TIMEOUT_SECS": "300"}, {"TREADLE_JOB_LEASE_SECS": "300"}),
    ],
    ids=["alone", "with a stored one"],
)
def test_f7_a_time_limit_that_is_not_less_than_the_lease_is_refused_with_both_names(
    one: Services, stored: dict[str, str], given: dict[str, str]
) -> None:
    for key, value in stored.items():
        one.treadle("config", "set", key, value)
    reason = spawn("serve", "--port", "0", "--log-format", "text", cwd=one.folder, **given).failed_in_one_line()
    assert "JOB_TIMEOUT_SECS" in reason and "JOB_LEASE_SECS" in reason and "environment" in reason


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"JOB_MAX_RETRIES": "many"}, "JOB_MAX_RETRIES"),
        ({"TREADLE_ANON_KEY": "same" * 8, "TREADLE_ADMIN_KEY": "same" * 8}, "TREADLE_ANON_KEY and TREADLE_ADMIN_KEY are equal"),
        ({"TREADLE_ANON_KEY": "no header has this" * 2}, "TREADLE_ANON_KEY must be printable ASCII without spaces"),
    ],
    ids=["a setting", "equal keys", "a key with a space"],
)
def test_l2_a_bad_environment_is_one_line(tmp_path: Path, given: dict[str, str], reason: str) -> None:
    assert reason in spawn("serve", "--port", "0", "--log-format", "text", cwd=tmp_path, **given).failed_in_one_line()


def test_l2_a_closed_standard_output_is_a_failure_before_any_key_is_made(one: Services) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", TREADLE, "serve", "--port", "0", "--log-format", "text"],
        cwd=one.folder, env=environment(), stderr=subprocess.PIPE, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, b"treadle: standard output is closed\n")
    assert sorted(one.start().started["keys"]) == ["admin", "anon", "service_role"]


def test_f8_keys_that_nobody_could_read_are_not_passed_over(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)  # nobody listens
    done = subprocess.run(
        [TREADLE, "serve", "--port", "0", "--log-format", "text"],
        cwd=tmp_path, env=environment(), stdout=write, stderr=subprocess.PIPE, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    os.close(write)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "rotate-key" in done.stderr


def test_e24_a_signal_while_it_starts_is_not_lost_even_if_the_store_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with services(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", tmp_path) as one:
            served = one.begin("--log-format", "text")
            connection, _ = silent.accept()  # it has come as far as asking the store
            with connection:
                served.signal()
                assert served.ended() == 0
            assert served.logged().splitlines()[-1] == "treadle: stopped"


# -- roles


def test_l11_the_api_runs_no_job_and_the_worker_has_no_api_but_runs_jobs_and_fires_cron(one: Services) -> None:
    api = one.start("--role", "api")
    one.register("real")
    id = api.enqueue("real")
    api.ask("POST", "/v1/functions/cron", {"name": "tick", "schedule": "* * * * * *", "function": "ticked"}, 201)
    one.register("ticked")
    worker = one.start("--role", "worker")  # which takes longer than a worker takes to find a job
    assert (worker.started["url"], worker.started["role"], worker.started["keys"]) == (None, "worker", {})
    assert not listening(worker), "a worker listens nowhere"
    assert api.until(id, "completed")["attempts"] == 1
    one.functions.called("ticked", 2)
    (entry,) = api.ask("GET", "/v1/functions/cron")
    assert entry["last_run"] is not None and entry["next_run"] is not None
    api.ask("DELETE", "/v1/functions/cron/tick")
    worker.stop()
    later = api.enqueue("real")
    fired = {job["id"] for job in api.ask("GET", "/v1/functions/jobs") if job["function"] == "ticked"}
    assert len(fired) >= 2
    waiting = api.job(later)
    api.stop()
    assert (waiting["status"], waiting["attempts"]) == ("pending", 0)
    assert [call.id for call in one.functions.of("real")] == [id]


def test_f15_a_worker_with_a_port_answers_health_and_metrics_there_and_nothing_else(one: Services) -> None:
    worker = one.start("--role", "worker", "--port", "0")
    assert len(listening(worker)) == 1
    assert [worker.status(path) for path in ("/healthz", "/readyz", "/metrics")] == [200] * 3
    assert worker.status("/v1/functions/jobs", "service_role") == 404
    worker.stop()


def listening(served: Served) -> list[str]:
    """The sockets on which a process listens."""
    held = set()
    for link in Path(f"/proc/{served.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since
            held.add(str(link.readlink()))
    rows = [line.split() for line in Path(f"/proc/{served.pid}/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in held]


def test_l11_host_and_port_are_where_it_listens(one: Services) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = one.start("--port", str(port))
    assert served.url == f"http://127.0.0.1:{port}"
    assert [int(row.rpartition(":")[2], 16) for row in listening(served)] == [port]
    result = spawn("serve", "--host", "no.such.host.invalid", "--log-format", "text", cwd=one.folder)
    assert "no.such.host.invalid" in result.failed_in_one_line()


# -- the log


def test_l11_the_log_is_json_line_by_line_and_names_job_function_and_attempt(one: Services) -> None:
    (one.folder / "functions/stray").mkdir(parents=True)
    served = one.start("--log-level", "debug")
    one.register("good")
    served.until(served.enqueue("good"), "completed")
    id = served.enqueue("ghost", max_attempts=1)
    served.until(id, "dead")
    served.stop()
    lines = served.lines()
    assert all(list(line)[:4] == ["ts", "level", "logger", "message"] for line in lines)
    (dead,) = [line for line in lines if " is dead at attempt 1 of 1: Function 'ghost' not found" in line["message"]]
    assert (dead["level"], dead["job_id"], dead["function"], dead["attempt"]) == ("error", id, "ghost", 1)
    (answered,) = [line for line in lines if "was answered with 200" in line["message"]]
    assert (answered["level"], answered["function"], answered["attempt"]) == ("debug", "good", 1)
    assert [line["message"] for line in lines][-2:] == ["stopping within 30 s; a second signal stops at once", "stopped"]


def test_l11_the_log_as_text_is_for_people_and_no_more_than_its_level(one: Services) -> None:
    served = one.start("--log-format", "text", "--log-level", "error")
    served.until(served.enqueue("ghost", max_attempts=1), "dead")
    served.stop()
    dead, *told = served.logged().splitlines()
    assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z ERROR   treadle: function:ghost .* is dead at attempt 1 of 1", dead)
    assert told == ["treadle: stopping within 30 s; a second signal stops at once", "treadle: stopped"]
    until(lambda: served.process.poll() == 0, "it has ended")
