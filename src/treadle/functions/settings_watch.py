"""The settings of a running service, which follow what is stored within about a second."""

from __future__ import annotations

import logging
import math

from treadle.core.errors import InvalidArgument
from treadle.engine.clock import EngineClock
from treadle.functions.reading import Reading
from treadle.functions.settings import ServiceSettings
from treadle.functions.stored_settings import Settings, Stored

_logger = logging.getLogger("treadle")


class SettingsWatch:
    """Answers the settings as often as one likes, from one event loop; the store is read about once a second.

    Stored values that have become bad are logged once, and the last good settings stay; so they do while the store is away.
    """

    def __init__(self, settings: Settings, clock: EngineClock | None = None, logger: logging.Logger = _logger) -> None:
        self._settings = settings
        self._logger = logger
        self._reading: Reading[Stored] = Reading(
            "the settings", settings.stored, clock or EngineClock(), logger, stale=math.inf
        )
        self._seen: Stored | None = None
        self._good: ServiceSettings | None = None
        self._problem: str | None = None

    async def read(self) -> ServiceSettings:
        """The settings that hold now. Only the first call may raise: `InvalidArgument` for bad ones, and store errors."""
        stored = self._reading.fresh()
        if stored is None:
            stored = await self._reading.value()
        if self._good is None or stored is not self._seen:
            self._good = self._settled(stored)
            self._seen = stored
        return self._good

    @property
    def latest(self) -> ServiceSettings:
        """The settings that the last `read` answered, for code that cannot wait; the first one must be over."""
        assert self._good is not None, "read() comes first"
        return self._good

    def _settled(self, stored: Stored) -> ServiceSettings:
        try:
            settings = self._settings.settled(stored)
        except InvalidArgument as error:
            if self._good is None:
                raise
            if str(error) != self._problem:
                self._problem = str(error)
                self._logger.warning("the settings stay as they were, since the stored ones are bad: %s", error)
            return self._good
        self._problem = None
        return settings
