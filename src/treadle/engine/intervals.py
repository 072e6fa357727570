"""The intervals of this process: registered in code, kept going in the store (T1 to T4)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from treadle.core.job import Job, NewJob
from treadle.core.schedule import Interval
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
        registered: dict[str, Interval],
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(interval, clock, logger)
        self._store = store
        self._registered = registered
        self._new_id = new_id

    async def run_once(self) -> None:
        """Look after every registered interval."""
        if self._registered:
            wanted = [(interval, self._new_id()) for interval in self._registered.values()]
            await self._store.ensure(wanted, now=self._clock.for_store())

    def following(self, job: Job) -> NewJob | None:
        """The copy to store in the step that ends this job, if it is an interval's."""
        interval = self._registered.get(job.schedule or "")
        return None if interval is None else self.copy(interval)

    def copy(self, interval: Interval) -> NewJob:
        """The next copy of an interval, due one interval after the store's now."""
        return interval.copy(self._new_id(), interval.seconds)
