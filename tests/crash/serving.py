"""`treadle serve` as real processes on one store, the functions that they call, and what both leave behind."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from treadle.core.filter import JobFilter
from treadle.core.job import Job
from treadle.core.policies.limits import FUNCTIONS_QUEUE
from treadle.engine.clock import EngineClock
from treadle.engine.operations import Operations
from treadle.stores import open_store

TREADLE = Path(sys.executable).with_name("treadle")
DEADLINE = 60.0
_OURS = ("TREADLE_", "JOB_", "METRICS", "MAX_PAYLOAD_BYTES", "COLUMNS", "NO_COLOR")
_pause = threading.Event()


def until(condition: Callable[[], Any], what: str, seconds: float = DEADLINE, told: Callable[[], str] = str) -> Any:
    """What the condition answers once that is true: it is about other processes, so that it is looked at often."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}\n{told()}"
        _pause.wait(0.02)
    return found


def environment(**changes: str) -> dict[str, str]:
    """The environment of this process without what would reach into a service."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OURS)} | changes


def treadle(*arguments: str, cwd: Path, **changes: str) -> Any:
    """Run a command to its end; answers what it prints with `--json`."""
    done = subprocess.run(
        [TREADLE, *arguments, "--json"], cwd=cwd, env=environment(**changes), capture_output=True, timeout=DEADLINE, check=False
    )
    # A store that is made is told of, and nothing else.
    told = [line for line in done.stderr.splitlines() if not line.startswith(b"treadle: there was no store at ")]
    assert (done.returncode, told) == (0, []), done
    return json.loads(done.stdout)


# -- functions that the test itself is


@dataclass(frozen=True)
class Call:
    """A request as a function got it."""

    function: str
    method: str
    id: str
    headers: Mapping[str, str]
    body: bytes


class Functions:
    """Functions of any name at one port, below `/NAME`. They answer 200 at once, unless `answering` has a plan for a name."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answering: defaultdict[str, Callable[[Call], int]] = defaultdict(lambda: lambda call: 200)
        self._open: set[socket.socket] = set()
        functions = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def answer(self) -> None:
                _, name, *_, id = self.path.split("/")
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {key.lower(): value for key, value in self.headers.items()}
                call = Call(name, self.command, id, headers, body)
                functions.calls.append(call)
                status = functions.answering[name](call)
                self.wfile.write(f"HTTP/1.1 {status} -\r\ncontent-length: 0\r\n\r\n".encode())

            do_JOB = do_POST = do_GET = answer

            def setup(self) -> None:
                super().setup()
                functions._open.add(self.connection)

            def finish(self) -> None:
                functions._open.discard(self.connection)
                super().finish()

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 100

            def handle_error(self, request: Any, client_address: Any) -> None:
                if not isinstance(sys.exception(), OSError):  # the service was killed, or the test is over
                    super().handle_error(request, client_address)

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}"

    def of(self, name: str) -> list[Call]:
        return [call for call in list(self.calls) if call.function == name]

    def called(self, name: str, times: int = 1) -> list[Call]:
        """Wait until it was called so often."""
        until(lambda: len(self.of(name)) >= times, f"{times} call(s) of {name}")
        return self.of(name)

    def hold(self, name: str) -> threading.Event:
        """Its calls are answered once the event is set."""
        held = threading.Event()

        def answer(call: Call) -> int:
            held.wait(DEADLINE)
            return 200

        self.answering[name] = answer
        return held

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(DEADLINE)
        self._server.server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        until(lambda: not self._open, "the connections of the functions are closed")


# -- the services


class Served:
    """One `treadle serve` process."""

    def __init__(self, services: Services, arguments: Sequence[str], prefix: Sequence[str], **changes: str) -> None:
        self.services = services
        port = () if "worker" in arguments else ("--port", "0")  # of a worker none, unless the test gives it one
        self.log = services.folder / f"serve-{len(services.all)}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*prefix, TREADLE, "serve", *port, "--json", "--store", services.store, *arguments],
                cwd=services.folder,
                env=environment(**{"PYTHONWARNINGS": "error", **changes}),
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.pid = self.process.pid
        self.started: dict[str, Any] = {}

    def wait_until_started(self) -> Served:
        """Wait for what it prints when it has started."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
        line = self.process.stdout.readline() if ready else b""
        assert line, f"it did not start: {self.log.read_text()}"
        self.started = json.loads(line)
        self.services.keys |= self.started["keys"]
        return self

    @property
    def url(self) -> str:
        url: str = self.started["url"]
        return url

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=DEADLINE)

    def answer(
        self, method: str, path: str, body: object = None, key: str | None = "service_role", **headers: str
    ) -> tuple[int, Any, http.client.HTTPMessage]:
        """The status, the data or the error, and the headers of one request."""
        known = self.services.keys.get(key or "", key)  # a role's name, or a key as it is
        connection = self.connection()
        try:
            data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            sent = {"content-type": "application/json"} if data is not None else {}
            connection.request(method, path, data, sent | headers | ({"apikey": known} if known else {}))
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        found = json.loads(text) if response.headers.get_content_type() == "application/json" else text
        if isinstance(found, dict) and path.startswith(("/v1/", "/healthz", "/readyz")):
            found = found.get("error") or found.get("data")
        return response.status, found, response.headers

    def ask(self, method: str, path: str, body: object = None, status: int = 200, key: str | None = "service_role") -> Any:
        """The data, or the error; the status must be the one expected."""
        got, data, _ = self.answer(method, path, body, key)
        assert got == status, (got, data, self.logged())
        return data

    def status(self, path: str, key: str | None = None) -> int:
        return self.answer("GET", path, key=key)[0]

    def enqueue(self, name: str, payload: object = None, **fields: Any) -> str:
        id: str = self.ask("POST", f"/v1/functions/{name}/jobs", {"payload": payload, **fields}, 201)["id"]
        return id

    def job(self, id: str) -> Any:
        return self.ask("GET", f"/v1/functions/jobs/{id}")

    def until(self, id: str, *statuses: str, attempts: int = 0, seconds: float = DEADLINE) -> Any:
        """The job once it has one of these statuses, and as many attempts."""

        def found() -> Any:
            job = self.job(id)
            return job if job["status"] in statuses and job["attempts"] >= attempts else None

        return until(found, f"{id} is {statuses}", seconds, lambda: f"{self.job(id)}\n{self.logged()}")

    def logged(self) -> str:
        return self.log.read_text()

    def lines(self) -> list[dict[str, Any]]:
        """The log, each line of which is JSON."""
        return [json.loads(line) for line in self.logged().splitlines()]

    def wait_for(self, text: str, seconds: float = DEADLINE) -> dict[str, Any]:
        """The first whole line of the log whose message has the text."""

        def found() -> dict[str, Any] | None:
            whole = self.logged().rpartition("\n")[0].splitlines()
            return next((line for line in map(json.loads, whole) if text in line["message"]), None)

        line: dict[str, Any] = until(found, f"{text!r} in the log", seconds, self.logged)
        return line

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self, seconds: float = DEADLINE) -> int:
        """The exit code."""
        code = self.process.wait(seconds)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def stop(self) -> None:
        """Stop it gracefully, and have it succeed."""
        self.signal()
        assert self.ended() == 0, self.logged()

    def kill9(self) -> None:
        self.process.kill()
        self.ended()


class Services:
    """Processes on one store, in one folder; `keys` are those that the store got at the first start."""

    def __init__(self, store: str, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self.keys: dict[str, str] = {}
        self.all: list[Served] = []
        self.functions = Functions()

    def begin(self, *arguments: str, prefix: Sequence[str] = (), **changes: str) -> Served:
        """Start one more, without waiting for it."""
        served = Served(self, arguments, prefix, **changes)
        self.all.append(served)
        return served

    def start(self, *arguments: str, **changes: str) -> Served:
        """One more, that runs."""
        return self.begin(*arguments, **changes).wait_until_started()

    def treadle(self, *arguments: str, **changes: str) -> Any:
        """A command on the same store."""
        return treadle(*arguments, "--store", self.store, cwd=self.folder, **changes)

    def register(self, name: str, *options: str) -> None:
        """Register one of the functions by URL."""
        self.treadle("functions", "add", name, self.functions.url(name), *options)

    def program(self, name: str, main: str, manifest: str | None = None) -> Path:
        """Put a function into the functions folder."""
        folder = self.folder / "functions" / name
        folder.mkdir(parents=True, exist_ok=True)
        if main:
            (folder / "main.py").write_text(main)
        if manifest is not None:
            (folder / "function.toml").write_text(manifest)
        return folder

    def stored(self) -> dict[str, Job]:
        """The jobs of functions as the store has them, by id."""

        async def read() -> dict[str, Job]:
            store = open_store(self.store)
            try:
                jobs = Operations(store, EngineClock()).iterate(JobFilter(queues=frozenset({FUNCTIONS_QUEUE})))
                return {job.id: job async for job in jobs}
            finally:
                await store.close()

        return asyncio.run(read())

    def logs(self) -> str:
        return "\n".join(f"--- {served.log.name}\n{served.logged()[-3000:]}" for served in self.all)

    def close(self) -> None:
        for served in self.all:
            if served.process.poll() is None:
                served.process.kill()
            served.ended()
        self.functions.close()


@contextlib.contextmanager
def services(store: str, folder: Path) -> Iterator[Services]:
    """Services that are gone afterwards."""
    one = Services(store, folder)
    try:
        yield one
    finally:
        one.close()


# -- load


class Load:
    """Clients that enqueue jobs as fast as they are answered, until told to stop. `accepted` are the ids answered with 201."""

    def __init__(self, served: Served, name: str, clients: int = 4, **fields: Any) -> None:
        self.accepted: list[str] = []
        self._over = threading.Event()
        self._body = json.dumps({"payload": "x" * 100, **fields}).encode()
        self._path = f"/v1/functions/{name}/jobs"
        self._headers = {"apikey": served.services.keys["service_role"], "content-type": "application/json"}
        self._threads = [threading.Thread(target=self._client, args=(served.connection(),)) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _client(self, connection: http.client.HTTPConnection) -> None:
        try:
            while not self._over.is_set():
                connection.request("POST", self._path, self._body, self._headers)
                response = connection.getresponse()
                text = response.read()
                if response.status == 201:
                    self.accepted.append(json.loads(text)["data"]["id"])
        except (OSError, http.client.HTTPException):
            pass  # the service was killed: nobody knows what became of this one request
        finally:
            connection.close()

    def end(self) -> list[str]:
        self._over.set()
        for thread in self._threads:
            thread.join(DEADLINE)
        return self.accepted


def repeated(calls: Sequence[Call]) -> int:
    """How many calls there were beyond one for each job."""
    return sum(count - 1 for count in Counter(call.id for call in calls).values())
