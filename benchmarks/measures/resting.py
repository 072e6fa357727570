"""Around a worker at rest: what idling costs, piles of jobs that are no concern of it, and looking at them."""

from __future__ import annotations

import asyncio
import time

from benchmarks import processes
from benchmarks.measures.watching import Result, Spec, all_started, board_of
from benchmarks.subject import Subject

STATES = ("pending", "running", "done", "dead")


async def idle(subject: Subject, spec: Spec) -> Result:
    """What a worker costs while there is nothing to do: CPU as a share of one core, and memory."""
    if spec["reset"]:
        await subject.reset()
    board = board_of(subject, 1)
    await subject.open()
    workers = [processes.spawn(spec, 0)]
    try:
        await subject.one("plain", 0)
        await all_started(board, 60, 0.01, workers)
        [pid] = board.processes
        await asyncio.sleep(min(1.0, spec["seconds"]))
        used, begun = processes.cpu_ns(pid), time.monotonic_ns()
        await asyncio.sleep(spec["seconds"])
        share = (processes.cpu_ns(pid) - used) / (time.monotonic_ns() - begun)
        memory = processes.memory_mib(pid)[0]
    finally:
        processes.stop(workers)
    await subject.close()
    return {"core_percent": share * 100, "idle_mib": memory}


async def pile(subject: Subject, spec: Spec) -> Result:
    """Store the jobs that later drains must not be slowed by."""
    await subject.reset()
    await subject.open()
    begun = time.perf_counter()
    await subject.pile(spec["pile"], spec["jobs"])
    await subject.close()
    return {"jobs": spec["jobs"], "rate": spec["jobs"] / (time.perf_counter() - begun)}


async def look(subject: Subject, spec: Spec) -> Result:
    """How long it takes to list a hundred jobs of one state, and to count all by state."""
    await subject.open()
    await subject.counted()  # opens the store
    seconds: dict[str, list[float]] = {"list_ms": [], "stats_ms": []}
    for _ in range(5):
        for field, read, states in (("list_ms", subject.listed, len(STATES)), ("stats_ms", subject.counted, 1)):
            begun = time.perf_counter()
            await read()
            seconds[field].append((time.perf_counter() - begun) * 1000 / states)
    await subject.close()
    return {field: sorted(values)[len(values) // 2] for field, values in seconds.items()}
