"""A look at the server's settings: what could lose jobs is told, once (S7)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

_logger = logging.getLogger("treadle")


class Precautions:
    """Speaks about one server at most once."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._told = False
        self._told_of_wakeups = False

    @property
    def wanted(self) -> bool:
        """Whether nothing was told of the server yet."""
        return not self._told

    def wakeups_refused(self, channel: str) -> None:
        """Warn that nobody hears of what this client stores."""
        if not self._told_of_wakeups:
            self._told_of_wakeups = True
            _logger.warning(
                "Redis at %s lets this client publish no wake-ups, so that workers find its jobs by polling alone; "
                "grant its user the channel &%s",
                self._server,
                channel,
            )

    def look_at(self, about: Mapping[str, str]) -> None:
        """Warn of an eviction policy that drops keys of any kind, and mention that nothing outlives a restart.

        The `volatile-` policies are harmless: no key of a store has an expiry of the server's.
        """
        if self._told or not about:
            return
        self._told = True
        policy = about.get("maxmemory_policy", "")
        if policy.startswith("allkeys-"):
            _logger.warning(
                "Redis at %s has maxmemory-policy %s, which may drop stored jobs when memory is short; set it to noeviction",
                self._server,
                policy,
            )
        if about.get("aof_enabled") == "0":
            _logger.info(
                "Redis at %s writes no append-only file: jobs since its last snapshot are lost if it stops; set appendonly yes",
                self._server,
            )
