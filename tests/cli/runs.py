"""Running the command as a process of its own, and what a run leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from treadle import GiveUp, Tasks

TREADLE = [sys.executable, "-m", "treadle.cli.main"]
DEADLINE = 30.0


def summaries_are_first_sentences(group: click.Group, commands: Mapping[str, tuple[str, str]]) -> None:
    """What a group lists of its commands is what these say of themselves (L1)."""
    with click.Context(group) as context:
        for name, (_, summary) in commands.items():
            found = group.get_command(context, name)
            assert found is not None
            assert (found.name, found.get_short_help_str(200)) == (name, summary)


@dataclass(frozen=True)
class Result:
    """What a run of the command left behind."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    def failed_in_one_line(self) -> str:
        """The reason of a failure (L2)."""
        assert self.code == 1, self
        lines = self.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("treadle: ") and "Traceback" not in self.err, self.err
        return lines[0]

    def refused_as_usage(self) -> str:
        """The text of a usage error (L2)."""
        assert self.code == 2, self
        assert self.stdout == b""
        assert self.err.startswith("Usage: treadle"), self.err
        return self.err


@dataclass
class Shop:
    """A folder with a store in it, and the jobs that were put there."""

    folder: Path
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / "jobs.db"

    @property
    def url(self) -> str:
        return f"sqlite:{self.path}"

    def tasks(self) -> Tasks:
        tasks = Tasks(self.url, max_attempts=1, concurrency=100)

        @tasks.handler("good")
        async def good(payload: object) -> None:
            pass

        @tasks.handler("bad")
        async def bad(payload: object) -> None:
            raise GiveUp("broken é → 😀")

        return tasks

    def run(self, work: Callable[[Tasks], Any]) -> Any:
        """Do something with the store from Python."""

        async def session() -> Any:
            async with self.tasks() as tasks:
                return await work(tasks)

        return asyncio.run(session())

    def enqueue(self, *jobs: Mapping[str, Any], drain: bool = False) -> list[str]:
        """Store jobs, and run what is due if asked to; answers their ids."""

        async def work(tasks: Tasks) -> list[str]:
            stored = await tasks.enqueue_many(jobs)
            if drain:
                await tasks.drain()
            return [one.id for one in stored]

        ids: list[str] = self.run(work)
        return ids


Run = Callable[..., Result]


def environment(**changes: str) -> dict[str, str]:
    """The environment for a real process."""
    kept = {k: v for k, v in os.environ.items() if k not in ("TREADLE_STORE", "TREADLE_DEBUG", "COLUMNS", "NO_COLOR")}
    return kept | {"PYTHONWARNINGS": "error"} | changes


def spawn(*arguments: str, cwd: Path, **changes: str) -> Result:
    """Run the command as a process of its own."""
    done = subprocess.run(
        [*TREADLE, *arguments], cwd=cwd, env=environment(**changes), capture_output=True, timeout=DEADLINE, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


class Worker:
    """A `treadle work` process whose lines on standard error can be waited for."""

    def __init__(self, folder: Path, *arguments: str, prefix: Sequence[str] = ()) -> None:
        self.lines: list[str] = []
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [*prefix, *TREADLE, "work", *arguments],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def wait_for(self, text: str) -> str:
        """The next line that contains the text."""
        deadline = time.monotonic() + DEADLINE
        while True:
            line = self._queue.get(timeout=max(0.01, deadline - time.monotonic()))
            assert line is not None, f"{text!r} was not printed, but: {self.lines}"
            self.lines.append(line)
            if text in line:
                return line

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit code; what was printed until then is in `lines`."""
        code = self.process.wait(DEADLINE)
        self._thread.join(DEADLINE)
        while not self._queue.empty():
            line = self._queue.get()
            if line is not None:
                self.lines.append(line)
        return code

    def close(self) -> str:
        """End the process if it still runs; answers what it printed on standard output."""
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        printed = self.process.stdout.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return printed


APP = """
import asyncio, os, sys, time
from treadle import Tasks

tasks = Tasks("sqlite:jobs.db", grace={grace})

def told(text):
    print(text, file=sys.stderr, flush=True)

@tasks.handler("quick")
async def quick(payload):
    told(f"ran {{payload}}")

@tasks.handler("patient")
async def patient(payload):
    told("began")
    await asyncio.sleep(payload)
    told("ended")

@tasks.handler("blocking")
def blocking(payload):
    told("began")
    time.sleep(payload)

@tasks.handler("rude")
async def rude(payload):
    told("began")
    time.sleep(payload)

@tasks.handler("leaves-a-thread")
async def leaves_a_thread(payload):
    told("began")
    await asyncio.to_thread(time.sleep, payload)
"""
