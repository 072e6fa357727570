"""A folder of functions for a test, the hosts that run it, and raw requests to them."""

import asyncio
import logging
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil

from treadle.functions.hosting import Hosts
from treadle.functions.hosting.pace import Pace

QUICK = Pace(first_pause=0.2, longest_pause=0.8, patience=0.5, check_every=0.2, look_every=0.1)
LOGGER = logging.getLogger("treadle.tests.hosting")

# A program without treadle: answers every request, or what its environment says.
SERVER = """
import http.server, json, os, signal, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        body = json.dumps({"pid": os.getpid(), "path": self.path, "method": self.command}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_JOB = do_GET = do_POST = answer
    def log_message(self, *args): pass
if __name__ == "__main__":
    http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""

DEAF = SERVER.replace("if __name__", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nif __name__")  # to SIGTERM
WAITING = "import threading; threading.Event().wait(600)"
FAMILY = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', '{WAITING}'])\n{SERVER}"


class Grounds:
    """The folder, and what is made in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "functions"
        self.folder.mkdir()
        self.notes = folder / "notes"

    def python(self, name: str, text: str) -> Path:
        """A `main.py`."""
        path = self.folder / name / "main.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def program(self, name: str, text: str = SERVER, manifest: str = "") -> Path:
        """A Python program that is run by its `function.toml`."""
        path = self.folder / name / "serve.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        (path.parent / "function.toml").write_text(f'command = ["{sys.executable}", "-S", "serve.py"]\n{manifest}')
        return path

    def hosts(self, **options: Any) -> Hosts:
        options.setdefault("pace", QUICK)
        return Hosts(self.folder, lambda: {"TREADLE_URL": "http://service"}, LOGGER, **options)

    def run(self, story: Callable[[Hosts], Awaitable[None]], **options: Any) -> None:
        """Tell a story with hosts, which are stopped at its end."""

        async def told() -> None:
            hosts = self.hosts(**options)
            try:
                async with asyncio.timeout(60):
                    await story(hosts)
            finally:
                await hosts.stop()

        asyncio.run(told())

    def processes(self) -> list[psutil.Process]:
        """Every process that works in the folder, whoever its parent is."""
        found = []
        for process in psutil.process_iter():
            try:
                if Path(process.cwd()).is_relative_to(self.folder):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found


async def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait for what happens in other processes."""
    loop, never = asyncio.get_running_loop(), asyncio.Event()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, f"not within {seconds} s"
        try:
            await asyncio.wait_for(never.wait(), 0.01)
        except TimeoutError:
            pass


async def noticed(hosts: Hosts, name: str, change: Callable[[], object]) -> None:
    """Change a file of the function, and wait until that is noticed."""
    await hosts.start()
    before = hosts.find(name)
    change()
    await until(lambda: hosts.find(name) is not before)


async def request(
    url: str, method: str = "GET", path: str = "/", body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """One raw request over a connection of its own."""
    given = {"host": "function", "content-length": str(len(body)), "connection": "close", **(headers or {})}
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in given.items()) + "\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    try:
        writer.write(head.encode() + body)
        answered = await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()
        await writer.wait_closed()
    top, _, content = answered.partition(b"\r\n\r\n")
    return int(top.split()[1]), content


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def open_descriptors() -> int:
    return psutil.Process().num_fds()
