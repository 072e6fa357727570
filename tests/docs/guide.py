"""Following a page for real: its files are saved, its commands run, and what they print is compared with what it shows."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEADLINE = 40.0
pause = threading.Event()
HERE = "http://127.0.0.1:8700"  # where the pages have the service


@dataclass(frozen=True)
class Block:
    """A fenced block, with the heading that it stands under and the line of text before it."""

    fence: str
    text: str
    under: str
    before: str

    @property
    def file(self) -> str | None:
        """Where it is to be saved, if the text says so."""
        found = re.findall(r"[Ss]ave (?:this|it) as `([^`]+)`", self.before)
        return found[-1] if found else None


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, in their order."""
    found, under, before = [], "", ""
    for part in re.split(r"(?m)(^```[^\n]*\n.*?^```$)", page, flags=re.DOTALL | re.MULTILINE):
        if part.startswith("```"):
            fence, text = part[3:].removesuffix("```").split("\n", 1)
            found.append(Block(fence.strip(), text, under, before))
        else:
            under = (re.findall(r"^##+ (.+)$", part, re.MULTILINE) or [under])[-1]
            before = part.strip().rpartition("\n\n")[2].replace("\n", " ")
    return found


class Running:
    """A program that runs. What it prints, errors among them, goes into a file, for children may outlive it."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        with tempfile.NamedTemporaryFile(prefix="printed-", dir=folder, delete=False) as printed:
            self._printed = Path(printed.name)
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=printed, stderr=printed)

    @property
    def lines(self) -> list[str]:
        """The whole lines that it has printed so far."""
        return self._printed.read_text(errors="replace").split("\n")[:-1]

    def until(self, pattern: str) -> re.Match[str]:
        """Wait for a line that matches."""
        found: list[re.Match[str]] = []

        def printed() -> bool:
            found[:] = [match for line in self.lines if (match := re.search(pattern, line))]
            return bool(found)

        until(printed, lambda: f"no line matched {pattern!r} in:\n" + "\n".join(self.lines))
        return found[0]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send the signal, and wait for the end."""
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)

    def close(self) -> None:
        """End it, politely at first, since it may have children that it would leave."""
        for end in (self.process.terminate, self.process.kill):
            if self.process.poll() is None:
                end()
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(10)


def plain_environment() -> dict[str, str]:
    """The environment without what would change the story, and with the `treadle` of this Python first in the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TREADLE_", "JOB_", "COLUMNS"))}
    kept.pop("METRICS", None)
    return kept | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}


def until(condition: Callable[[], object], told: Callable[[], str] = lambda: "that did not happen in time") -> None:
    """Look again and again, since what is waited for happens in another process."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, told()
        pause.wait(0.1)


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z")
_SECRET = re.compile(r"(treadle_(?:service_role|anon|admin|function)_)[\w-]+(?:\.\.\.)?")


def normal(text: str) -> Any:
    """What is printed without what differs from run to run: as a value if it is JSON, else as lines."""
    text = _MOMENT.sub("MOMENT", _ID.sub("ID", _SECRET.sub(r"\1SECRET", text)))
    text = re.sub(r"http://127\.0\.0\.1:\d+", "URL", text)
    text = re.sub(r"(?<=treadle )\d+\.\d+\.\d+", "VERSION", text)
    try:
        return json.loads(text)
    except ValueError:
        return [re.sub(r" +", " ", line).rstrip() for line in text.strip().splitlines()]
