"""What the measures share: their board, waiting for jobs to have started and ended, and quantiles."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Sequence
from typing import Any, TypeAlias

from benchmarks.board import Board
from benchmarks.load import failing
from benchmarks.subject import Subject, Void

Spec: TypeAlias = dict[str, Any]
Result: TypeAlias = dict[str, Any]


def board_of(subject: Subject, jobs: int) -> Board:
    """An empty board for so many jobs."""
    return Board(os.path.join(subject.place, "board"), jobs)


async def all_started(
    board: Board, seconds: float, nap: float, workers: Sequence[subprocess.Popen[bytes]], jobs: int | None = None
) -> None:
    """Wait until all jobs of the board have started, or the first `jobs` of them. Raises `Void` after `seconds`."""
    wanted = board.jobs if jobs is None else jobs
    deadline = time.monotonic() + seconds
    while board.started < wanted:
        if time.monotonic() > deadline:
            raise Void(f"only {board.started} of {wanted} ran in {seconds:g} s")
        if workers and all(worker.poll() is not None for worker in workers):
            raise Void(f"the worker ended; {board.started} of {wanted} ran")
        await asyncio.sleep(nap)


async def settled(subject: Subject) -> int | None:
    """When the store first showed that nothing is left, in ns; None where it cannot tell."""
    deadline = time.monotonic() + 30
    while left := await subject.left():
        if time.monotonic() > deadline:
            raise Void(f"{left} jobs never settled")
        await asyncio.sleep(0.002)
    return None if left is None else time.time_ns()


def check_ends(spec: Spec, before: Any, after: Any) -> None:
    """Raise `Void` unless the store shows as many more done and dead jobs as there were."""
    if before is None or after is None:
        return
    dead = failing(spec["jobs"]) if spec["kind"] == "failing" else 0
    expected = {"done": spec["jobs"] - dead, "dead": dead}
    found = {state: after[state] - before[state] for state in expected}
    if found != expected:
        raise Void(f"the store shows {found}, not {expected}")


def quantile(sorted_values: Sequence[float], part: float) -> float:
    """The value that this part of them is at most; the greatest one where there are few."""
    return sorted_values[min(len(sorted_values) - 1, int(part * len(sorted_values)))]
