"""Pickup: how long a job waits for an idle worker."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import time
from collections.abc import Sequence

from benchmarks import processes
from benchmarks.board import Board
from benchmarks.measures.watching import Result, Spec, all_started, board_of, quantile
from benchmarks.subject import Subject, Void


async def pickup(subject: Subject, spec: Spec) -> Result:
    """One job at a time, an idle worker in another process: from just before the enqueue call to the handler's start."""
    await subject.reset()
    board = board_of(subject, spec["jobs"] + 3)
    await subject.open()
    workers = [processes.spawn(spec, 0)]
    try:
        result = await _picked_up(subject, board, spec, workers)
    finally:
        processes.stop(workers)
    await subject.close()
    return result


async def pickup_here(subject: Subject, spec: Spec) -> Result:
    """The same with the worker in the event loop that enqueues."""
    await subject.reset()
    board = board_of(subject, spec["jobs"] + 3)
    await subject.open()
    await subject.start_here(spec["concurrency"])
    result = await _picked_up(subject, board, spec, ())
    await subject.stop_here()
    await subject.close()
    return result


async def _picked_up(subject: Subject, board: Board, spec: Spec, workers: Sequence[subprocess.Popen[bytes]]) -> Result:
    chance = random.Random(7)
    calls, returns = [], []
    for number in range(board.jobs):
        warm = number < 3
        await asyncio.sleep(0.3 if warm else chance.uniform(0.01, 0.06))
        calls.append(time.time_ns())
        await subject.one("plain", number)
        returns.append(time.time_ns())
        await all_started(board, 30, 0.001, workers, number + 1)
    if not board.exact:
        raise Void("a job ran twice")
    starts = board.starts.tolist()
    from_call = sorted((start - call) / 1e6 for start, call in zip(starts[3:], calls[3:], strict=True))
    from_return = sorted((start - back) / 1e6 for start, back in zip(starts[3:], returns[3:], strict=True))
    return {
        "jobs": len(from_call),
        "p50_ms": quantile(from_call, 0.5),
        "p99_ms": quantile(from_call, 0.99),
        "after_return_p50_ms": quantile(from_return, 0.5),
        "load": os.getloadavg()[0],
    }
