"""Draining: jobs are put in first, and worked off by worker processes, or in one event loop."""

from __future__ import annotations

import asyncio
import os
import time

from benchmarks import processes
from benchmarks.board import Board
from benchmarks.measures.watching import Result, Spec, all_started, board_of, check_ends, settled
from benchmarks.subject import Subject, Void


async def drain(subject: Subject, spec: Spec) -> Result:
    """Jobs put in first; from the first handler's start until the store shows none left. Worker processes."""
    if spec["reset"]:
        await subject.reset()
    board = board_of(subject, spec["jobs"])
    await subject.open()
    await subject.fill(spec["kind"], spec["jobs"])
    before = await subject.ended()
    workers = [processes.spawn(spec, slot) for slot in range(spec["workers"])]
    try:
        await all_started(board, spec["seconds"], 0.01, workers)
        end = await settled(subject)
        cpu = sum(processes.cpu_ns(pid) - used for pid, used in board.processes.items())
        memory = [processes.memory_mib(pid)[1] for pid in board.processes]
        await asyncio.sleep(0.2)  # for a job that would run a second time
    finally:
        processes.stop(workers)
    check_ends(spec, before, await subject.ended())
    durability = subject.durability()
    await subject.close()
    return {
        **_drained(board, end),
        "cpu_us": cpu / 1e3 / board.jobs,
        "peak_mib": max(memory),
        "durability": durability,
        "processes": len(memory),
    }


async def drain_here(subject: Subject, spec: Spec) -> Result:
    """The same in one event loop, for stores that live in one process."""
    await subject.reset()
    board = board_of(subject, spec["jobs"])
    await subject.open()
    bare = _resident_mib()
    await subject.fill(spec["kind"], spec["jobs"])
    stored = _resident_mib()
    used = time.process_time_ns()
    await subject.start_here(spec["concurrency"])
    await all_started(board, spec["seconds"], 0.02, ())
    end = await settled(subject)
    cpu = time.process_time_ns() - used
    await asyncio.sleep(0.2)
    await subject.stop_here()
    check_ends(spec, dict.fromkeys(("done", "dead"), 0), await subject.ended())
    await subject.close()
    return {
        **_drained(board, end),
        "cpu_us": cpu / 1e3 / board.jobs,
        "peak_mib": processes.memory_mib(os.getpid())[1],
        "bytes_a_job": (stored - bare) * 1048576 / board.jobs,
    }


def _drained(board: Board, end: int | None) -> Result:
    counts = bytes(board.counts)
    if not board.exact:
        raise Void(f"ran once: {counts.count(1)}, never: {counts.count(0)}, of {board.jobs}")
    starts = board.starts.tolist()
    first, last = min(starts), max(starts)
    rate = board.jobs / ((end or last) - first) * 1e9
    return {"jobs": board.jobs, "rate": rate, "settled": end is not None, "load": os.getloadavg()[0]}


def _resident_mib() -> float:
    return processes.memory_mib(os.getpid())[0]
