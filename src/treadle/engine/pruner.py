"""The pruner: deletes finished jobs by age, in small batches (E29)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.core.store import Store
from treadle.engine.clock import EngineClock
from treadle.engine.service import Service
from treadle.engine.setup import Setup
from treadle.engine.sweep import Sweep


class Pruner(Service):
    """Prunes by a retention; jobs with an idempotency key go by their own age, since their key still guards."""

    def __init__(
        self, store: Store, clock: EngineClock, logger: logging.Logger, interval: float, setup: Setup, which: JobFilter
    ) -> None:
        super().__init__(interval, clock, logger)
        self._store = store
        self._setup = setup
        self._which = which

    async def run_once(self) -> None:
        """Delete all that is old enough now."""
        if due := list(self._due()):
            sweep = await Sweep.begin(self._store, self._clock)
            for which in due:
                await sweep.over(which, self._delete)

    async def _delete(self, which: JobFilter, size: int, begun: datetime) -> int:
        return await self._store.delete(which, limit=size, now=begun)

    def _due(self) -> Iterator[JobFilter]:
        keep = self._setup.profile.retention
        for state, unkeyed in ((State.DONE, keep.done), (State.DEAD, keep.dead)):
            for age, keyed in ((unkeyed, False), (keep.keyed, True)):
                if age is not None and unkeyed is not None:
                    yield JobFilter(
                        states=frozenset({state}),
                        names=self._which.names,
                        queues=self._which.queues,
                        older_than=age,
                        keyed=keyed,
                        of_faces=self._which.of_faces,
                    )
