"""Enqueueing: one by one, by 64 callers at once, in bulk."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.measures.watching import Result, Spec
from benchmarks.subject import Subject, Void

CALLERS = 64


async def one(subject: Subject, spec: Spec) -> Result:
    """Enqueue one by one, each awaited before the next."""
    await subject.reset()
    await subject.open()
    for number in range(20):
        await subject.one("plain", number)
    begun, used = time.perf_counter(), time.process_time()
    for number in range(spec["jobs"]):
        await subject.one("plain", number)
    return await _enqueued(subject, spec, begun, used)


async def callers(subject: Subject, spec: Spec) -> Result:
    """64 callers at once, each one by one."""
    await subject.reset()
    await subject.open()
    each = max(1, spec["jobs"] // CALLERS)
    if subject.threads:
        with ThreadPoolExecutor(CALLERS) as pool:
            begun, used = time.perf_counter(), time.process_time()
            for done in [pool.submit(_calls_blocking, subject, first, each) for first in range(CALLERS)]:
                done.result()
            return await _enqueued(subject, {**spec, "jobs": each * CALLERS}, begun, used)
    begun, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_calls(subject, first, each) for first in range(CALLERS)))
    return await _enqueued(subject, {**spec, "jobs": each * CALLERS}, begun, used)


async def _calls(subject: Subject, first: int, each: int) -> None:
    for number in range(first * each, (first + 1) * each):
        await subject.one("plain", number)


def _calls_blocking(subject: Subject, first: int, each: int) -> None:
    for number in range(first * each, (first + 1) * each):
        subject.one_blocking("plain", number)


async def bulk(subject: Subject, spec: Spec) -> Result:
    """Enqueue by the bulk call, a thousand a call."""
    if not subject.has_bulk:
        raise Void("no bulk call")
    await subject.reset()
    await subject.open()
    begun, used = time.perf_counter(), time.process_time()
    await subject.bulk("plain", range(spec["jobs"]))
    return await _enqueued(subject, spec, begun, used)


async def _enqueued(subject: Subject, spec: Spec, begun: float, used: float) -> Result:
    seconds, cpu = time.perf_counter() - begun, time.process_time() - used
    durability = subject.durability()
    await subject.close()
    jobs = spec["jobs"]
    return {"jobs": jobs, "rate": jobs / seconds, "cpu_us": cpu / jobs * 1e6, "durability": durability}
