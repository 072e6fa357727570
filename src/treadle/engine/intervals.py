"""The intervals of this process: registered in code, kept going in the store (T1 to T4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from treadle.core.errors import StoreError
from treadle.core.job import Job, NewJob
from treadle.core.schedule import INTERVAL_PREFIX, Interval
from treadle.core.store import Store
from treadle.engine.clock import EngineClock
from treadle.engine.service import Service


class Intervals(Service):
    """Puts the pending copy of each interval back where it is missing, such as at the first start or after a deletion."""

    def __init__(
        self,
        store: Store,
        clock: EngineClock,
        logger: logging.Logger,
        interval: float,
        registered: Mapping[str, Interval],
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(interval, clock, logger)
        self._store = store
        self._registered = registered
        self._of_others: dict[str, Interval] = {}
        self._new_id = new_id

    async def run_once(self) -> None:
        """Look after every registered interval."""
        if self._registered:
            wanted = [(interval, self._new_id()) for interval in self._registered.values()]
            await self._store.ensure(wanted, now=self._clock.for_store())

    async def prepare(self, jobs: Sequence[Job]) -> None:
        """Look up the intervals of jobs about to run that other processes registered, so that `following` knows them."""
        names = {job.schedule for job in jobs if job.schedule and job.schedule.startswith(INTERVAL_PREFIX)}
        if unknown := sorted(names - self._registered.keys()):
            try:
                self._of_others.update((interval.schedule, interval) for interval in await self._store.intervals(unknown))
            except StoreError as error:
                self._logger.warning("the intervals %s could not be read: %s", ", ".join(unknown), error)

    def following(self, job: Job) -> NewJob | None:
        """The copy to store in the step that ends this job, if it is an interval's."""
        name = job.schedule or ""
        interval = self._registered.get(name) or self._of_others.get(name)
        return None if interval is None else self.copy(interval)

    def copy(self, interval: Interval) -> NewJob:
        """The next copy of an interval, due one interval after the store's now."""
        return interval.copy(self._new_id(), interval.seconds)
