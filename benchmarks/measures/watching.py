"""What the measures share: their board, and waiting for jobs to have started."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Sequence
from typing import Any, TypeAlias

from benchmarks.board import Board
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
