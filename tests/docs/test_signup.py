"""The sign-up example is run as a user runs it: a process of its own, real HTTP, real SMTP, and a real `kill -9`."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from email import message_from_bytes
from pathlib import Path
from types import TracebackType
from typing import Self

from treadle import Job, State, Tasks

RUN = Path(__file__).parents[2] / "examples" / "signup" / "run.py"
WELCOMED = ["ada@example.com", "ben@example.com", "busy-dora@example.com", "cleo@example.com", "fay@example.com"]


class Example:
    """The running example, and what it has printed."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, str(RUN), "--data", str(folder), "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.transcript: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def until(self, pattern: str, seconds: float = 20.0) -> re.Match[str]:
        """Wait for a line to come that matches."""
        deadline = time.monotonic() + seconds
        while (line := self._lines.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
            self.transcript.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"no line matched {pattern!r} before the end of:\n{''.join(self.transcript)}")

    def ends(self) -> str:
        """Wait for the end; answers all that was printed."""
        code = self.process.wait(20)
        while (line := self._lines.get(timeout=5)) is not None:
            self.transcript.append(line)
        text = "".join(self.transcript)
        assert code == 0, text
        return text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait(10)
        self._reader.join(10)
        assert self.process.stdout
        self.process.stdout.close()


def jobs_in(folder: Path) -> list[Job]:
    with closing(Tasks(f"sqlite:{folder / 'signup.db'}").sync) as tasks:
        return tasks.list()


def mails_in(folder: Path) -> Counter[tuple[str, str]]:
    """How many mails were caught of each address and subject."""
    mails = [message_from_bytes(path.read_bytes()) for path in (folder / "mails").glob("*.eml")]
    return Counter((mail["To"], mail["Subject"]) for mail in mails)


def test_the_story_holds_and_nothing_is_lost_or_sent_twice_by_kill_9(tmp_path: Path) -> None:
    with Example(tmp_path) as first:
        pid = int(first.until(r"process (\d+)")[1])
        first.until(r"5\. ")
        first.until("newsletter 1: 2 of 5 sent")
        assert pid == first.process.pid
        os.kill(pid, signal.SIGKILL)
        first.process.wait(10)
    told = "".join(first.transcript)
    assert "busy-dora@example.com: the next attempt comes 0.5 s later" in told
    assert "gone-emil@example.com: dead after 3 attempts" in told
    assert re.search(r"(?s)fay@example.com: 201, the job is stored.*fay@example.com: 200.*created=False", told)

    assert mails_in(tmp_path).total() == 7
    [newsletter] = [job for job in jobs_in(tmp_path) if job.name == "newsletter"]
    assert newsletter.state is State.RUNNING

    with Example(tmp_path) as second:
        second.until("Found .* of an earlier run: 5 jobs done, 0 pending, 1 running, 1 dead; 7 mails")
        second.until("newsletter 1: done at attempt 2")
        second.until("start again")
        second.process.send_signal(signal.SIGTERM)
        assert "Stopped: 6 jobs done, 0 pending, 0 running, 1 dead" in second.ends()

    expected = {(address, subject): 1 for address in WELCOMED for subject in ("Welcome", "Newsletter 1")}
    assert mails_in(tmp_path) == expected
    jobs = {(job.name, str(job.payload.get("email"))): job for job in jobs_in(tmp_path) if isinstance(job.payload, dict)}
    assert len(jobs) == len(jobs_in(tmp_path)) == 7
    dead = jobs["welcome-mail", "gone-emil@example.com"]
    assert dead.state is State.DEAD and dead.attempts == 3 and len(dead.failures) == 3 and "550" in (dead.last_error or "")
    retried = jobs["welcome-mail", "busy-dora@example.com"]
    assert retried.state is State.DONE and retried.attempts == 2 and "451" in retried.failures[0].error
    assert {job.state for job in jobs.values() if job is not dead} == {State.DONE}


def test_ctrl_c_in_the_middle_gives_the_slow_job_back_and_the_next_start_finishes_it(tmp_path: Path) -> None:
    with Example(tmp_path) as first:
        first.until("newsletter 1: 1 of 5 sent")
        first.process.send_signal(signal.SIGINT)
        assert "Stopped: 5 jobs done, 1 pending, 0 running, 1 dead" in first.ends()
    with Example(tmp_path, "--once") as second:
        second.until("newsletter 1 was waiting")
        second.until("newsletter 1: done at attempt 1")
        second.ends()
    assert mails_in(tmp_path) == {(address, subject): 1 for address in WELCOMED for subject in ("Welcome", "Newsletter 1")}
