"""The metrics of a service process: cheap to count, and written out for whoever asks (F15)."""

from __future__ import annotations

import asyncio
import logging

from treadle.core.job import Job
from treadle.core.outcome import Outcome
from treadle.core.store import Inspector
from treadle.engine.clock import EngineClock
from treadle.functions.http.head import METHODS
from treadle.functions.metrics.capped import OTHER
from treadle.functions.metrics.counts import Counts
from treadle.functions.metrics.holdings import Standing
from treadle.functions.metrics.page import CONTENT_TYPE, Page

NO_ANSWER = "none"


class Metrics:
    """An `Observer` of the worker, and more. It belongs to one event loop, and shares nothing with another of its kind.

    Jobs go by the names that the store has for them, `function:send-report`, as `treadle list` shows them. From 200 names
    on, further ones are counted together under the name `other`.
    """

    def __init__(self, store: Inspector, clock: EngineClock | None = None, logger: logging.Logger | None = None) -> None:
        clock = clock or EngineClock()
        self._counts = Counts()
        self._standing = Standing(store, clock, logger or logging.getLogger("treadle"))
        self._started = clock.now().timestamp()
        self._rendering: asyncio.Task[bytes] | None = None

    def claimed(self, jobs: int, seconds: float) -> None:
        """A claim was answered with so many jobs, after so many seconds."""
        self._counts.claims.add(seconds)
        self._counts.claimed_jobs += jobs

    def ended(self, job: Job, outcome: Outcome, seconds: float) -> None:
        """An attempt ended after so many seconds, with this outcome, which is not written yet."""
        attempts = self._counts.attempts[job.name]
        attempts.seconds.add(seconds)
        attempts.outcomes[type(outcome)] += 1

    def reclaimed(self, job: Job, outcome: Outcome) -> None:
        """A job was taken back whose lease had run out; how long it ran nobody knows."""
        self._counts.attempts[job.name].outcomes[type(outcome)] += 1

    def called(self, job_name: str, status: int | None, *, direct: bool = False) -> None:
        """A function was called, by a job or directly (F3), and answered with that status; None if no answer came."""
        answers = self._counts.calls[job_name]
        key = ("direct" if direct else "job", _status_class(status))
        answers[key] = answers.get(key, 0) + 1

    def http_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered after so many seconds. The route is a pattern, such as `/v1/functions/{name}/jobs`."""
        method = method if method in METHODS else OTHER
        self._counts.requests[route, method, str(status)].value += 1
        self._counts.request_seconds[route, method].add(seconds)

    async def render(self) -> tuple[str, bytes]:
        """The content type and the page. Scrapes at the same time share one, written in a thread so that the loop goes on."""
        if self._rendering is None:
            self._rendering = asyncio.create_task(self._rendered(), name="treadle-metrics-page")
            self._rendering.add_done_callback(self._over)
        return CONTENT_TYPE, await asyncio.shield(self._rendering)

    async def close(self) -> None:
        """End what a scrape began; safe twice."""
        await self._standing.close()
        if self._rendering is not None:
            await asyncio.wait({self._rendering})

    async def _rendered(self) -> bytes:
        holdings = await self._standing.read()
        return await asyncio.to_thread(Page(self._started, self._counts.copy(), holdings).text)

    def _over(self, rendering: asyncio.Task[bytes]) -> None:
        self._rendering = None
        if not rendering.cancelled():
            rendering.exception()  # whoever waited has it; if all of them left, nobody is to be told of it


def _status_class(status: int | None) -> str:
    if status is None:
        return NO_ANSWER
    return f"{status // 100}xx" if 100 <= status <= 599 else OTHER
