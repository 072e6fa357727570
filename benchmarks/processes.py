"""Worker processes of a trial: started, watched and ended, and what they cost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def spawn(spec: dict[str, Any], slot: int) -> subprocess.Popen[bytes]:
    """A worker of the subject in a process group of its own, which ends with this process."""
    with open(os.path.join(spec["place"], f"worker-{slot}.log"), "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.trial", "worker", json.dumps(spec)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "BENCH_SLOT": str(slot)},
        )


def end_with_parent() -> None:
    """In a worker: end the whole group when the trial's process is gone, however it went."""

    def watch() -> None:
        with contextlib.suppress(OSError):
            os.read(0, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def serve(program: str, *arguments: str) -> None:
    """In a worker: run a command of the library's environment, as its documentation starts a worker."""
    subprocess.run([Path(sys.executable).parent / program, *arguments], cwd=ROOT, check=False)


def stop(workers: Iterable[subprocess.Popen[bytes]]) -> None:
    """End the workers, and what they started."""
    workers = list(workers)
    for worker in workers:
        if worker.poll() is None:
            _signal(worker, signal.SIGTERM)
    for worker in workers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(6)
        _signal(worker, signal.SIGKILL)
        worker.wait()
        if worker.stdin is not None:
            worker.stdin.close()


def _signal(worker: subprocess.Popen[bytes], which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.pid, which)


def cpu_ns(pid: int) -> int:
    """The CPU time that the process has used in all its threads, user and system, in ns."""
    return time.clock_gettime_ns(~pid << 3 | 2)  # the kernel's name for the CPU clock of a process


def memory_mib(pid: int) -> tuple[float, float]:
    """What the process holds in memory now, and at most so far, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = {line.split(":")[0]: float(line.split()[1]) for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return kib["VmRSS"] / 1024, kib["VmHWM"] / 1024
