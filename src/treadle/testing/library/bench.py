"""The bench: a store, a clock to move by hand, and what each test of the library makes on them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from treadle.core.filter import EVERYTHING
from treadle.core.job import Job, NewJob
from treadle.core.store import Claim, Demand, Store
from treadle.tasks.app import Tasks
from treadle.testing.clock import ManualClock
from treadle.testing.contract import expect
from treadle.testing.factory import JobFactory

DEADLINE = 10.0


class Bench:
    """One store under the library, with the moment in the test's hand."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = ManualClock()
        self.make = JobFactory(store, self.clock)
        self.logged: list[str] = []
        self._logger = logging.Logger("treadle.testing")  # noqa: LOG001  # one of its own, that no configuration reaches
        self._logger.addHandler(_Collector(self.logged))
        self._made: list[Tasks] = []

    def tasks(self, **settings: Any) -> Tasks:
        """A `Tasks` of its own on the store, as another process would have, running on the bench's clock."""
        made = Tasks(self.store, clock=self.clock, logger=self._logger, worker_id=f"worker-{len(self._made)}", **settings)
        self._made.append(made)
        return made

    async def stop(self) -> None:
        """Stop every worker that a test left running."""
        for made in self._made:
            await made.stop(0)

    async def job(self, id: str) -> Job:
        """The stored job, which must exist."""
        return expect.one(await self.store.get([id]), f"the job {id} is stored")

    async def jobs(self) -> list[Job]:
        """All stored jobs, newest first."""
        return await self.store.find(EVERYTHING, limit=10_000, now=self.clock.now())

    async def lost(self, job: Job | NewJob, lease: float = 60.0) -> Claim:
        """The due job, claimed by a worker that is never heard of again."""
        token = self.make.token()
        demand = Demand(1, (job.queue,), {job.name: job.max_attempts or 5})
        claimed = await self.store.claim(token, [demand], worker="lost", lease=lease, now=self.clock.now())
        expect.equal([one.id for one in claimed.jobs], [job.id], "the due job is claimed")
        return Claim(job.id, token)

    async def happens(self, event: asyncio.Event, words: str) -> None:
        """Fail where the event does not come within seconds."""
        try:
            async with asyncio.timeout(DEADLINE):
                await event.wait()
        except TimeoutError:
            expect.that(False, f"{words}, within {DEADLINE:g} s")


class _Collector(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
