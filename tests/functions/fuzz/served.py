"""`treadle serve` in a process of its own, on a SQLite file, with one function from its functions folder."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2

PATIENCE = 60
FUNCTION = "echo"
ECHO = """
from starlette.responses import JSONResponse


async def handle(request):
    return JSONResponse({"method": request.method, "path": request.url.path})
"""


@dataclass(frozen=True)
class Served:
    """Where it answers, its keys, and its log."""

    url: str
    keys: Mapping[str, str]
    log: Path

    def dead_letter(self) -> str:
        """The id of a job that is dead: nobody knows its function."""
        ends = time.monotonic() + PATIENCE
        with httpx2.Client(base_url=self.url, headers={"apikey": self.keys["service_role"]}, trust_env=False) as http:
            job = http.post("/v1/functions/ghost/jobs", json={"max_attempts": 1}).json()["data"]
            while job["status"] != "dead":
                assert time.monotonic() < ends, job
                time.sleep(0.05)
                job = http.get(f"/v1/functions/jobs/{job['id']}").json()["data"]
            return str(job["id"])


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    """The service; at the end it must stop as it should."""
    main = folder / "functions" / FUNCTION / "main.py"
    main.parent.mkdir(parents=True)
    main.write_text(ECHO)
    log = folder / "service.log"
    command = [
        sys.executable,
        "-m",
        "treadle.cli.main",
        "serve",
        "--port",
        "0",
        "--json",
        "--store",
        f"sqlite:{folder}/tasks.db",
    ]
    with log.open("wb") as err:
        process = subprocess.Popen(
            [*command, "--functions", str(folder / "functions"), *options],
            stdout=subprocess.PIPE,
            stderr=err,
            cwd=folder,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()  # it ends where the process does, so that nothing can hang here
            assert line, log.read_text()
            told = json.loads(line)
            yield Served(told["url"], told["keys"], log)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0, log.read_text()
        finally:
            process.kill()
            process.wait(PATIENCE)
            if process.stdout is not None:
                process.stdout.close()
