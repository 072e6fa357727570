"""L7, E24: `treadle work` as a real process, and every way to end it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import DEADLINE, Run, Shop, Worker, spawn

from treadle import Job, Tasks

Work = Callable[..., Worker]


def job(shop: Shop, job_id: str) -> Job:
    async def work(tasks: Tasks) -> Job | None:
        return await tasks.get(job_id)

    found = shop.run(work)
    assert isinstance(found, Job)
    return found


def test_l7_a_worker_runs_jobs_says_where_and_stops_with_0(shop: Shop, work: Work) -> None:
    (first,) = shop.enqueue({"name": "quick", "payload": 1})
    worker = work("--concurrency", "3", "--queues", "default,slow", "--queues", "third")
    beginning = worker.wait_for(" works on ")
    for text in ("jobs.db", "quick", "concurrency 3", "queues default, slow, third"):
        assert text in beginning
    worker.wait_for("ran 1")
    shop.enqueue({"name": "quick", "payload": 2, "queue": "slow"})
    worker.wait_for("ran 2")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.lines[-1] == "treadle: stopped; no job was left running"
    assert job(shop, first).state == "done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl+C"])
def test_l7_a_running_job_finishes_within_the_grace_and_nothing_more_is_claimed(shop: Shop, work: Work, number: int) -> None:
    first, second = shop.enqueue({"name": "patient", "payload": 0.5}, {"name": "patient", "payload": 0.5})
    worker = work()
    worker.wait_for("began")
    worker.signal(number)
    worker.wait_for("ended")
    assert worker.wait() == 0
    assert (job(shop, first).state, job(shop, second).state) == ("done", "pending")
    assert job(shop, second).attempts == 0


def test_e24_what_does_not_finish_within_the_grace_is_given_back(shop: Shop, work: Work) -> None:
    (slow,) = shop.enqueue({"name": "patient", "payload": 60})
    worker = work("--grace", "0s")
    worker.wait_for("began")
    worker.signal()
    assert worker.wait() == 0
    stored = job(shop, slow)
    assert (stored.state, stored.attempts, stored.interruptions) == ("pending", 0, 1)


def test_e24_a_second_signal_stops_at_once_and_nothing_is_lost(shop: Shop, work: Work) -> None:
    (slow,) = shop.enqueue({"name": "patient", "payload": 60})
    worker = work(grace=500.0)
    worker.wait_for("began")
    worker.signal(signal.SIGINT)
    worker.wait_for("stopping within 500 s")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 1
    assert worker.lines[-1].startswith("treadle: stopped at once; no job was left running")
    stored = job(shop, slow)
    assert (stored.state, stored.attempts, stored.interruptions) == ("pending", 0, 1)


def test_e24_a_thread_that_still_runs_is_left_to_its_lease_and_named(shop: Shop, work: Work) -> None:
    (stuck,) = shop.enqueue({"name": "blocking", "payload": 600})
    worker = work(grace=500.0)
    worker.wait_for("began")
    worker.signal()
    worker.wait_for("stopping")
    worker.signal()
    assert worker.wait() == 1
    assert f"1 left running, to be taken back when the lease ends: blocking {stuck}" in worker.lines[-1]
    assert job(shop, stuck).state == "running"


def test_e24_a_job_that_blocks_the_loop_does_not_keep_the_second_signal_away(shop: Shop, work: Work) -> None:
    (stuck,) = shop.enqueue({"name": "rude", "payload": 600})
    worker = work()
    worker.wait_for("began")
    worker.signal()
    worker.wait_for("stopping")
    worker.signal()
    assert worker.wait() == 1
    assert "left to their leases" in worker.lines[-1]
    assert job(shop, stuck).state == "running"


def test_e24_a_third_signal_does_not_wait_even_for_that(shop: Shop, work: Work) -> None:
    shop.enqueue({"name": "rude", "payload": 600})
    worker = work()
    worker.wait_for("began")
    worker.signal(signal.SIGTERM)
    while worker.process.poll() is None:
        worker.signal(signal.SIGINT)
    assert worker.wait() == 1


def test_l7_threads_that_a_job_left_behind_do_not_keep_the_process_alive(shop: Shop, work: Work) -> None:
    shop.enqueue({"name": "leaves-a-thread", "payload": 600})
    worker = work("--grace", "0s")
    worker.wait_for("began")
    worker.signal()
    assert worker.wait() == 0


def test_l7_as_pid_1_of_a_pid_namespace(shop: Shop, work: Work) -> None:
    unshare = shutil.which("unshare")
    prefix = [unshare or "", "--pid", "--fork", "--kill-child"]
    probe = subprocess.run([*prefix, "true"], capture_output=True, check=False, timeout=DEADLINE) if unshare else None
    if probe is None or probe.returncode:
        pytest.skip("a PID namespace cannot be made here" + (f": {probe.stderr.decode().strip()}" if probe else ": no unshare"))
    (slow,) = shop.enqueue({"name": "patient", "payload": 0.5})
    worker = work(prefix=prefix)
    worker.wait_for("began")
    children = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children").read_text().split()
    (inner,) = map(int, children)
    assert Path(f"/proc/{inner}/status").read_text().split("NSpid:")[1].splitlines()[0].split()[-1] == "1"
    os.kill(inner, signal.SIGTERM)
    worker.wait_for("ended")
    assert worker.wait() == 0
    assert worker.lines[-1] == "treadle: stopped; no job was left running"
    assert job(shop, slow).state == "done"


def test_l7_store_overrules_that_of_the_application(shop: Shop, work: Work) -> None:
    (there,) = shop.enqueue({"name": "quick", "payload": 1})
    other = Shop(shop.folder / "other")
    other.enqueue({"name": "quick", "payload": 2})
    worker = work("--store", other.url)
    assert other.url in worker.wait_for(" works on ")
    worker.wait_for("ran 2")
    worker.signal()
    assert worker.wait() == 0
    assert job(shop, there).state == "pending"


def test_l7_queues_keep_the_others_away(shop: Shop, work: Work) -> None:
    (other,) = shop.enqueue({"name": "quick", "payload": "default"})
    shop.enqueue({"name": "quick", "payload": "slow", "queue": "slow"})
    worker = work("--queues", "slow")
    worker.wait_for("ran slow")
    worker.signal()
    assert worker.wait() == 0
    assert job(shop, other).state == "pending"


def test_l7_the_application_logs_to_standard_error_at_the_level_given(shop: Shop, work: Work) -> None:
    shop.enqueue({"name": "nobody-knows-it"})
    worker = work("--log-level", "warning")
    assert " WARNING treadle: " in worker.wait_for("nobody-knows-it")
    worker.signal()
    assert worker.wait() == 0


@pytest.mark.parametrize(
    ("source", "app", "reason"),
    [
        (None, "absent:tasks", "there is no module 'absent'"),
        (None, "absent.deeper:tasks", "there is no module 'absent'"),
        ("x = 1", "broken:tasks", "broken has no attribute 'tasks'"),
        ("x = 1", "broken:x", "broken:x is of type int, not a treadle.Tasks"),
        ("import treadle", "broken:treadle.Tasks", "broken:treadle.Tasks is the class Tasks, not a treadle.Tasks"),
        ("import not_there_at_all", "broken:tasks", "No module named 'not_there_at_all' (broken.py, line 1)"),
        ("\n1/0", "broken:tasks", "ZeroDivisionError: division by zero (broken.py, line 2)"),
        ("def x(:", "broken:tasks", "SyntaxError"),
        ("import sys; sys.exit(0)", "broken:tasks", "SystemExit"),
        ("from treadle import Tasks\ntasks = Tasks('sqlite:x.db')", "broken:tasks", "has no handlers"),
        ("from treadle import Tasks\ntasks = Tasks('nonsense')", "broken:tasks", "no store URL"),
    ],
    ids=str,
)  # fmt: skip
def test_l7_an_application_that_cannot_be_loaded_is_one_line(tmp_path: Path, source: str | None, app: str, reason: str) -> None:
    if source is not None:
        (tmp_path / "broken.py").write_text(source)
    result = spawn("work", app, cwd=tmp_path)
    assert reason in result.failed_in_one_line()
    assert result.stdout == b""


def test_l7_a_store_that_cannot_be_used_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("this is no database\n" * 500)
    (tmp_path / "app.py").write_text(
        "from treadle import Tasks\ntasks = Tasks('sqlite:no.db')\n@tasks.handler('x')\nasync def x(payload): pass\n"
    )
    assert spawn("work", "app:tasks", cwd=tmp_path).failed_in_one_line()


def test_configure_comes_before_start(treadle: Run, shop: Shop) -> None:
    from treadle import InvalidArgument

    async def work(tasks: Tasks) -> None:
        tasks.configure(concurrency=3, queues=["a"], grace=1)
        assert (tasks.settings.concurrency, tasks.settings.queues, tasks.grace) == (3, ("a",), 1.0)
        assert tasks.names == ["good", "bad"]
        for bad in ({"concurrency": 0}, {"queues": []}, {"grace": -1}):
            with pytest.raises(InvalidArgument):
                tasks.configure(**bad)  # type: ignore[arg-type]
        await tasks.start()
        with pytest.raises(InvalidArgument, match="before start"):
            tasks.configure(concurrency=2)

    shop.run(work)


def test_e24_a_signal_while_the_application_is_imported_is_not_lost(shop: Shop, work: Work) -> None:
    os.mkfifo(shop.folder / "go")
    (shop.folder / "slowapp.py").write_text(
        "import sys\nprint('importing', file=sys.stderr, flush=True)\nopen('go').close()\nfrom shopapp import tasks\n"
    )
    worker = work(app="slowapp:tasks")
    worker.wait_for("importing")
    worker.signal(signal.SIGTERM)
    worker.wait_for("stopping once the application is imported")
    (shop.folder / "go").open("w").close()
    assert worker.wait() == 0


def test_l7_a_memory_store_is_told_to_be_this_process_own(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from treadle import Tasks\ntasks = Tasks('memory:')\n@tasks.handler('x')\nasync def x(payload): pass\n"
    )
    worker = Worker(tmp_path, "app:tasks")
    try:
        worker.wait_for("lives in this process alone")
        worker.signal()
        assert worker.wait() == 0
    finally:
        worker.close()


@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_e24_a_signal_ends_a_start_for_which_the_store_gives_no_answer(shop: Shop, work: Work, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(DEADLINE)
        url = f"{kind}://127.0.0.1:{silent.getsockname()[1]}/0"
        worker = work("--store", f"{url}?connect_timeout=600" if kind == "postgres" else url)
        connection, _ = silent.accept()
        with connection:
            worker.signal()
            assert worker.wait() == 0
        assert worker.lines[-1] == "treadle: stopped before it had started"
