"""A pgbouncer for the tests, pooling by transaction; of this system, or unpacked from its packages without an installation."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from tests.servers.postgres import PostgresServer, free_port

_PACKAGES = ("pgbouncer", "libevent-2.1-7", "libc-ares2")
_DEADLINE = 30.0


@functools.cache
def program() -> tuple[Path, dict[str, str]] | None:
    """The program and the environment that it needs, or None where there is no way to one."""
    installed = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if installed:
        return Path(installed), {}
    folder = Path(tempfile.gettempdir()) / f"treadle-pgbouncer-{os.getuid()}"
    found = folder / "usr/sbin/pgbouncer"
    if not found.exists() and shutil.which("apt-get") and shutil.which("dpkg"):
        with tempfile.TemporaryDirectory() as packages:
            for command in (
                ["apt-get", "download", *_PACKAGES],
                ["sh", "-c", f'for f in *.deb; do dpkg -x "$f" {folder}; done'],
            ):
                with contextlib.suppress(subprocess.SubprocessError, OSError):
                    subprocess.run(command, cwd=packages, capture_output=True, timeout=60, check=True)
    if not found.exists():
        return None
    libraries = next(iter((folder / "usr/lib").glob("*/libevent*.so*")), folder).parent
    return found, {"LD_LIBRARY_PATH": str(libraries)}


@contextlib.contextmanager
def pgbouncer(server: PostgresServer) -> Iterator[int]:
    """The port of a pgbouncer in front of the server, which shares four connections among all clients of a database."""
    found = program()
    assert found is not None
    binary, environment = found
    port = free_port()
    owner: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="treadle-pgbouncer-") as folder:
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        Path(folder).chmod(0o755)
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\n"
            "max_client_conn = 200\nlogfile =\npidfile =\n"
        )
        process = subprocess.Popen(
            [binary, settings], env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **owner
        )
        try:
            deadline = time.monotonic() + _DEADLINE
            while True:
                try:
                    psycopg.connect(server.url_of("postgres", port), connect_timeout=2).close()
                    break
                except psycopg.OperationalError:
                    assert process.poll() is None and time.monotonic() < deadline, "pgbouncer did not start"
                    time.sleep(0.02)
            yield port
        finally:
            process.terminate()
            process.wait(_DEADLINE)
