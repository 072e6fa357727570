"""Schedules: how late one fires on a machine that has nothing else to do, and how long it takes to fire many at once."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from benchmarks import processes
from benchmarks.board import Board
from benchmarks.measures.watching import Result, Spec, all_started, board_of, check_ends, quantile, settled
from benchmarks.subject import Subject, Void

WARM = 500  # at most so many jobs wake the workers; they are numbered after those of the schedules
SAMPLE = 200  # schedules that are stored first, to learn how long one takes
NOTICED = 1.2  # seconds after which a worker has noticed what another process stored: its poll interval is 1 s


@dataclass(frozen=True)
class _Site:
    """A subject with its workers awake and nothing to do; no worker processes where they run in this event loop."""

    subject: Subject
    board: Board
    workers: Sequence[subprocess.Popen[bytes]]
    jobs: int
    warm: int
    seconds: float

    async def run(self, nap: float) -> list[int]:
        """When the handlers of all schedules' jobs have started, in ns. Raises `Void` unless each has exactly once."""
        await all_started(self.board, self.seconds, nap, self.workers, self.jobs + self.warm)
        if await settled(self.subject) is None:
            raise Void("the store cannot tell what is left")
        await asyncio.sleep(0.2)  # for a job that would run a second time
        counts = bytes(self.board.counts[: self.jobs])
        if counts != b"\x01" * self.jobs:
            raise Void(f"fired once: {counts.count(1)}, never: {counts.count(0)}, of {self.jobs}")
        return self.board.starts[: self.jobs].tolist()

    def cpu_ns(self) -> int:
        """The CPU time that the processes have used which run jobs."""
        return sum(map(processes.cpu_ns, self.board.processes))


@contextlib.asynccontextmanager
async def _working(subject: Subject, spec: Spec) -> AsyncIterator[_Site]:
    """The store emptied, and the workers known to be awake, since each has run a job."""
    await subject.reset()
    board = board_of(subject, spec["jobs"] + WARM)
    await subject.open()
    workers = [processes.spawn(spec, slot) for slot in range(spec["workers"])]
    if not workers:
        await subject.start_here(spec["concurrency"])
    try:
        warm = 0
        while len(board.processes) < max(1, len(workers)):
            if warm == WARM:
                raise Void(f"only {len(board.processes)} of {len(workers)} workers ran a job")
            await subject.one("plain", spec["jobs"] + warm)
            warm += 1
            await all_started(board, spec["seconds"], 0.01, workers, warm)
        await settled(subject)
        before = await subject.ended()
        yield _Site(subject, board, workers, spec["jobs"], warm, spec["seconds"])
        check_ends(spec, before, await subject.ended())
    finally:
        processes.stop(workers)
    if not workers:
        await subject.stop_here()
    await subject.close()


async def punctual(subject: Subject, spec: Spec) -> Result:
    """One schedule due each second, nothing else to do: from the due time until its job is enqueued, and until it starts."""
    async with _working(subject, spec) as site:
        first = await _stored(site, apart=1)
        starts = await site.run(0.05)
        enqueued = await subject.enqueued()
        durability = subject.durability()
    due = [(first + number) * 1_000_000_000 for number in range(site.jobs)]
    enqueues = sorted((enqueued[number] - moment) / 1e6 for number, moment in enumerate(due))
    handlers = sorted((start - moment) / 1e6 for start, moment in zip(starts, due, strict=True))
    if enqueues[0] < 0:
        raise Void(f"a schedule fired {-enqueues[0]:.1f} ms early")
    return {
        "jobs": site.jobs,
        "p50_ms": quantile(enqueues, 0.5),
        "p99_ms": quantile(enqueues, 0.99),
        "max_ms": enqueues[-1],
        "start_p50_ms": quantile(handlers, 0.5),
        "start_p99_ms": quantile(handlers, 0.99),
        "start_max_ms": handlers[-1],
        "durability": durability,
        "load": os.getloadavg()[0],
    }


async def firing(subject: Subject, spec: Spec) -> Result:
    """Many schedules due at one second: from then until the store shows none of them due, and until the last job starts."""
    async with _working(subject, spec) as site:
        due = await _stored(site)
        used = site.cpu_ns()
        while time.time() < due + 0.002:
            await asyncio.sleep(due + 0.002 - time.time())
        # In one loop each look takes time from the firing: the memory store reads all schedules for it.
        looked = await _fired(site, 0.01 if site.workers else 0.05)
        starts = await site.run(0.01)
        cpu = site.cpu_ns() - used
        durability = subject.durability()
    if min(starts) < due * 1_000_000_000:
        raise Void(f"a schedule fired {due * 1e3 - min(starts) / 1e6:.1f} ms early")
    run = max(starts) / 1e9 - due
    enqueued = min(looked - due, run)  # a job that starts is in the store, though the look may come later
    return {
        "jobs": site.jobs,
        "rate": site.jobs / enqueued,
        "enqueued_s": enqueued,
        "run_s": run,
        "cpu_us": cpu / 1e3 / site.jobs,
        "durability": durability,
        "load": os.getloadavg()[0],
    }


async def _stored(site: _Site, apart: int = 0) -> int:
    """Store the schedules, and answer the second at which the first one is due; `apart` is how long after it the next is."""
    sample = min(site.jobs, SAMPLE)
    begun = time.monotonic()
    await site.subject.schedule(range(sample), math.ceil(time.time()) + 3600, 0)  # those are replaced at once
    each = (time.monotonic() - begun) / sample
    first = math.ceil(time.time() + NOTICED + 2 * each * site.jobs)
    await site.subject.schedule(range(site.jobs), first, apart)
    if time.time() > first - NOTICED:
        raise Void(f"storing {site.jobs} schedules took longer than foreseen")
    return first


async def _fired(site: _Site, nap: float) -> float:
    """When the store first showed no schedule that is due, in seconds."""
    deadline = time.monotonic() + site.seconds
    while await site.subject.due():
        if time.monotonic() > deadline:
            raise Void(f"schedules were still due after {site.seconds:g} s")
        await asyncio.sleep(nap)
    return time.time()
