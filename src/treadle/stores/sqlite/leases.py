"""The lease keeper: renews from a thread that waits, apart from every event loop (E20)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from treadle.core.store import Claim
from treadle.stores.sqlite import finishing
from treadle.stores.sqlite.connection import Connection
from treadle.stores.sqlite.moments import present


class Keeper:
    """Renews through the store's writing thread, which no handler can block; a renewal shares its commits.

    A connection of its own would only wait for that thread's lock, since one writes at a time.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def renew(self, claims: Sequence[Claim], lease: float, now: datetime | None = None) -> set[Claim]:
        """Lease the jobs for `lease` seconds from now; answers the claims that still held."""
        if not claims:
            return set()
        return self._connection.write_blocking(lambda session: finishing.renew(session, claims, lease, present(now)))

    def close(self) -> None:
        """Nothing is held."""
