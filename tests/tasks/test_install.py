"""`tasks.install` with real applications, under a real server, ended by a real SIGTERM (E25)."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from treadle import InvalidArgument, Tasks

APPS = Path(__file__).parent / "apps"
pause = threading.Event()
KINDS = ["starlette", "fastapi", "litestar"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Served:
    def __init__(self, kind: str, folder: Path, autostart: bool) -> None:
        self.store = f"sqlite:{folder}/jobs.db"
        self.log, self.go, self.port = folder / "log", folder / "go", free_port()
        self.log.touch()
        environment = {
            **os.environ, "STORE": self.store, "AUTOSTART": str(int(autostart)), "LOG": str(self.log), "GO": str(self.go),
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", f"served:{kind}", "--factory", "--port", str(self.port), "--app-dir", str(APPS)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.wait_for("the app's own start")

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def wait_for(self, line: str) -> None:
        deadline = time.monotonic() + 20
        while line not in self.lines():
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < deadline, f"no {line!r} in {self.lines()}"
            pause.wait(0.01)  # what is waited for happens in another process: look again soon

    def enqueue(self, what: str) -> str:
        deadline = time.monotonic() + 20
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/enqueue?what={what}", timeout=10) as answer:
                    return answer.read().decode()
            except OSError:  # the server does not listen yet
                assert time.monotonic() < deadline
                pause.wait(0.01)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def ended(self) -> int:
        return self.process.wait(timeout=20)


@contextmanager
def served(kind: str, folder: Path, autostart: bool = True):
    server = Served(kind, folder, autostart)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


def states(store: str) -> dict[str, str]:
    tasks = Tasks(store)
    try:
        return {job.payload: job.state.value for job in tasks.sync.list()}
    finally:
        tasks.sync.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_worker_lives_with_the_app_and_sigterm_lets_the_running_job_finish(kind, tmp_path):
    with served(kind, tmp_path) as server:
        server.enqueue("one")
        server.enqueue("two")
        server.wait_for("start one")
        server.terminate()
        server.go.touch()
        server.ended()
        assert server.process.returncode in (0, -signal.SIGTERM)  # uvicorn raises the signal again once it has stopped
        assert server.lines()[-1] == "the app's own end"
        assert server.lines()[:3] == ["the app's own start", "start one", "end one"]
        left = states(server.store)
        assert left["one"] == "done"
        assert left["two"] in ("pending", "done")


@pytest.mark.parametrize("kind", KINDS)
def test_with_autostart_false_the_app_only_enqueues(kind, tmp_path):
    with served(kind, tmp_path, autostart=False) as server:
        server.go.touch()
        server.enqueue("one")
        server.terminate()
        server.ended()
        assert server.lines() == ["the app's own start", "the app's own end"]
        assert states(server.store) == {"one": "pending"}


def test_anything_else_is_refused_with_what_to_do_instead():
    with pytest.raises(InvalidArgument, match=r"not dict; elsewhere call `await tasks.start\(\)`"):
        Tasks("memory:").install({})
