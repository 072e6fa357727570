"""The key of a running service for the processes of its functions: the service role, for as long as it runs (F2)."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from treadle.core.errors import StoreError
from treadle.core.store import Documents
from treadle.engine.clock import EngineClock
from treadle.engine.ids import new_id
from treadle.engine.service import Service
from treadle.functions.keys import NAMESPACE, SESSION, as_stored, new_key

LIFE = 300.0
RENEWED_EVERY = 60.0
FAREWELL = 2.0


class SessionKey(Service):
    """Keeps the hash of `key` in the store for `LIFE` seconds from the last round, and no longer than until `stop`.

    A service that is killed leaves a key that is accepted until then, and that nobody knows but its functions.
    """

    def __init__(self, store: Documents, clock: EngineClock, logger: logging.Logger) -> None:
        super().__init__(RENEWED_EVERY, clock, logger)
        self.key = new_key("session")
        self._store = store
        self._name = SESSION + new_id(clock.unix_ms())

    async def run_once(self) -> None:
        """Put the hash anew; also where it expired during an outage."""
        value = as_stored(self._name, self.key)
        await self._store.put_document(NAMESPACE, self._name, value, expires_in=LIFE, now=self._clock.for_store())

    async def stop(self) -> None:
        """End the rounds, and take the key back."""
        await super().stop()
        with contextlib.suppress(StoreError, TimeoutError):  # it expires by itself
            async with asyncio.timeout(FAREWELL):
                await self._store.delete_document(NAMESPACE, self._name, now=self._clock.for_store())
