"""The lookout: warns about names that wait and that nobody here handles, once for each (E19)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from treadle.core.store import Store
from treadle.engine.clock import EngineClock
from treadle.engine.registry import Registry
from treadle.engine.service import Service


class Lookout(Service):
    """Looks through an index, so that however many such jobs wait, looking costs the same."""

    def __init__(
        self,
        store: Store,
        clock: EngineClock,
        logger: logging.Logger,
        interval: float,
        registry: Registry,
        queues: Sequence[str] | None,
    ) -> None:
        super().__init__(interval, clock, logger)
        self._store = store
        self._registry = registry
        self._queues = queues
        self._told: set[str] = set()

    async def run_once(self) -> None:
        """Warn about each unhandled name that was not warned about before."""
        for name in await self._store.pending_names(self._queues):
            if name not in self._registry and name not in self._told:
                self._told.add(name)
                self._logger.warning("jobs named %r wait, and no handler for that name is registered in this worker", name)
