"""The Redis store: the contract of `core/store.py`, put together from its parts."""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.errors import InvalidArgument
from treadle.core.store import LeaseKeeper, Listener
from treadle.stores.redis.documents import Documents
from treadle.stores.redis.end_of_move import EndOfMove
from treadle.stores.redis.intervals import Intervals
from treadle.stores.redis.keeper import RedisLeaseKeeper
from treadle.stores.redis.link import Link
from treadle.stores.redis.moves import Moves
from treadle.stores.redis.reading import Reading
from treadle.stores.redis.schedules import Schedules
from treadle.stores.redis.upkeep import Upkeep
from treadle.stores.redis.url import address
from treadle.stores.redis.wakeups import Subscription

PREFIX = "treadle"


class RedisStore(Moves, Upkeep, Intervals, Schedules, Reading, Documents, EndOfMove):
    """Jobs in Redis 6.2 or newer, or Valkey; any thread and event loop may use it (S7).

    `prefix` names the store among others in the same database; all its keys begin with `{prefix}:`, so that a cluster
    keeps them in one slot. `timeout` is how many seconds an answer may take, `patience` for how many seconds a call tries
    to connect. Both end in `StoreUnavailable`. Raises `InvalidArgument` for a URL or a prefix that cannot be meant.
    """

    def __init__(self, url: str, *, prefix: str | None = None, timeout: float = 10.0, patience: float = 1.0) -> None:
        there = address(url, timeout)
        name = prefix if prefix is not None else there.prefix if there.prefix is not None else PREFIX
        if not name or any(sign in name for sign in "{}\0"):
            raise InvalidArgument(f"the prefix of a Redis store must be text without braces, not {name!r}")
        self._address = there
        self._tag = f"{{{name}}}"
        super().__init__(Link(there, self._tag, patience))

    async def migrate(self) -> str:
        """Answer that there is nothing to do; raises `SchemaTooNew` where a newer treadle has been here (S4)."""
        await self._link.call("stats", 0)
        return "Redis has no tables; there is nothing to migrate."

    def lease_keeper(self) -> LeaseKeeper:
        """A keeper with a blocking connection of its own (E20)."""
        return RedisLeaseKeeper(self._address, self._tag)

    async def listen(self, wake: Callable[[], None]) -> Listener:
        """Call `wake` soon after jobs may have become claimable, through a subscription that reconnects (E26)."""
        subscription = Subscription(self._address, f"{self._tag}:wake", wake)
        await subscription.begun()
        return subscription

    async def close(self) -> None:
        """Give up the connections of all event loops; a later use connects again."""
        await self._link.close()

    def __repr__(self) -> str:
        return f"RedisStore({self._address.shown}, prefix={self._tag[1:-1]!r})"
