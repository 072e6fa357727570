"""File descriptors: clients, however many, leave enough for the jobs (F14)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from edges import HOST, Call, client, function, run

from treadle.functions.http import descriptors

KEY = "the-service-role-key-of-this-test"
TREADLE = [sys.executable, "-m", "treadle.cli.main"]


@pytest.mark.parametrize(
    ("limit", "clients"),
    [(16, 4), (48, 12), (256, 96), (1_024, 384), (4_096, 1_536), (65_536, 24_576), (resource.RLIM_INFINITY, 24_576)],
)
def test_clients_leave_descriptors_for_all_else(limit: int, clients: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert descriptors.for_clients() == clients


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [
        (1_024, 4_096, 4_096),
        (1_024, 1_048_576, 65_536),
        (256, resource.RLIM_INFINITY, 65_536),
        (1_024, 1_024, None),
        (100_000, 200_000, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_limit_is_raised_as_far_as_it_may_be(soft: int, hard: int, wanted: int | None, monkeypatch: pytest.MonkeyPatch):
    seen = []

    def refuse(which: int, limits: tuple[int, int]) -> None:
        seen.append(limits)
        raise ValueError

    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    descriptors.raise_limit()
    assert seen == ([] if wanted is None else [(wanted, hard)])


# --- the real process


@contextlib.asynccontextmanager
async def serving(folder: Path, limits: str) -> AsyncIterator[tuple[int, int]]:
    """`treadle serve` with these limits, as a shell sets them; gives its process and its port."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f'{limits} && exec "$@"', "sh", *TREADLE, "serve", "--port", "0", "--json"),
        cwd=folder,
        env={**os.environ, "TREADLE_SERVICE_ROLE_KEY": KEY},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        said = await process.stdout.readline()
        assert said, (await process.communicate())[1].decode()
        yield process.pid, int(json.loads(said)["url"].rpartition(":")[2])
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="the limits of another process are seen in /proc alone")
def test_treadle_serve_raises_its_limit(tmp_path: Path):
    async def main():
        async with serving(tmp_path, "ulimit -Sn 256") as (pid, _):
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            found = re.search(r"Max open files +(\d+)", Path(f"/proc/{pid}/limits").read_text())
            assert found
            assert int(found[1]) == min(descriptors.MOST, hard if hard != resource.RLIM_INFINITY else descriptors.MOST)

    run(main())


def test_jobs_are_called_while_clients_take_all_connections_that_they_get(tmp_path: Path):
    async def behave(call: Call) -> None:
        await call.body()
        await call.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    async def asked(port: int, method: str, path: str, body: bytes = b"") -> Any:
        head = f"{method} {path} HTTP/1.1\r\napikey: {KEY}\r\ncontent-type: application/json\r\n".encode()
        async with client(port) as peer:
            answer = await peer.ask(head + HOST + b"content-length: %d\r\n\r\n" % len(body) + body)
            return json.loads(answer.body)["data"]

    async def main():
        async with function(behave) as fn, serving(tmp_path, "ulimit -n 48") as (_, port), contextlib.AsyncExitStack() as stack:
            adding = ("functions", "add", "far", fn.url)
            await asyncio.to_thread(subprocess.run, [*TREADLE, *adding], cwd=tmp_path, check=True, capture_output=True)
            for _ in range(150):
                await stack.enter_async_context(client(port))
            for _ in range(5):
                job = await asked(port, "POST", "/v1/functions/far/jobs", b"{}")
                while job["status"] not in ("completed", "dead"):
                    job = await asked(port, "GET", f"/v1/functions/jobs/{job['id']}")
                assert (job["status"], job["attempts"]) == ("completed", 1), job

    run(main())
