"""The ten minutes with the library, done as the page tells them, with real processes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers import postgres, valkey

PAGE = (Path(__file__).parents[2] / "docs/start/library.md").read_text()
BLOCKS = re.findall(r"^```([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
pause = threading.Event()

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Reader:
    """Someone who follows the page in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if name != "TREADLE_STORE"}
        self.store = "sqlite:data/jobs.db"
        self.worker: subprocess.Popen[bytes] | None = None
        self.output = folder / "worker.log"

    def python(self, *arguments: str) -> str:
        return self._run(sys.executable, *arguments)

    def treadle(self, *arguments: str) -> str:
        return self._run(sys.executable, "-m", "treadle.cli.main", *arguments, "--store", self.store)

    def _run(self, *command: str) -> str:
        ended = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=30)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def work(self) -> None:
        with self.output.open("ab") as output:
            command = [sys.executable, "-m", "treadle.cli.main", "work", "jobs:tasks"]
            self.worker = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=output, stderr=output)

    def ctrl_c(self) -> None:
        assert self.worker
        self.worker.send_signal(signal.SIGINT)
        assert self.worker.wait(20) == 0

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, self.output.read_text()
            pause.wait(0.05)  # what is waited for happens in another process: look again soon

    def close(self) -> None:
        if self.worker and self.worker.poll() is None:
            self.worker.kill()
            self.worker.wait(10)


def test_the_ten_minutes_go_as_told(tmp_path: Path) -> None:
    first, interval, _, changed = [text for fence, text in BLOCKS if fence.startswith("python")]
    jobs, reader = tmp_path / "jobs.py", Reader(tmp_path)
    jobs.write_text(first)
    try:
        assert reader.python("jobs.py", "ada@example.com").startswith("stored ")
        assert reader.python("jobs.py", "ada@example.com").startswith("there already: ")
        assert "pending  welcome-email" in reader.treadle("list")

        reader.work()
        reader.until(lambda: "writing to ada@example.com" in reader.output.read_text())

        reader.python("jobs.py", "busy-ben@example.com")
        reader.until(lambda: json.loads(reader.treadle("list", "--status", "dead", "--json")))
        [dead] = json.loads(reader.treadle("list", "--status", "dead", "--json"))
        shown = reader.treadle("show", dead["id"])
        assert shown.startswith("welcome-email  dead\n")
        assert shown.count("ConnectionError: the mail server is busy") == 3
        reader.ctrl_c()

        lines = [line for line in first.splitlines(keepends=True) if "busy" not in line]
        jobs.write_text("".join([*lines[:-2], interval, *lines[-2:]]))
        reader.work()
        assert reader.treadle("retry", "--all-dead") == "Sent 1 job round again\n"
        reader.until(lambda: "writing to busy-ben@example.com" in reader.output.read_text())
        reader.until(lambda: re.search(r"^\d+ done, \d dead$", reader.output.read_text(), re.MULTILINE))
        assert "pending  count-jobs" in reader.treadle("list")
        reader.ctrl_c()

        new, old = changed.rstrip().split("  # was: ")
        assert f"tasks = {old}\n" in jobs.read_text()
        server = postgres.shared_server()
        redis_url = f"{valkey.shared().url}?prefix={valkey.shared().fresh_prefix()}"
        reader.environment |= {"DATABASE_URL": server.url_of(server.fresh_database()), "REDIS_URL": redis_url}
        for reader.store in ("postgres:", "redis:"):
            jobs.write_text(jobs.read_text().replace(f"tasks = {old}", new))
            reader.output.unlink()
            if reader.store == "postgres:":
                assert reader.treadle("migrate").startswith("Applied 0001")
            assert reader.python("jobs.py", "ada@example.com").startswith("stored ")
            reader.work()
            reader.until(lambda: "writing to ada@example.com" in reader.output.read_text())
            reader.ctrl_c()
            old, new = new.removeprefix("tasks = "), 'tasks = Tasks("redis:")'
    finally:
        reader.close()
