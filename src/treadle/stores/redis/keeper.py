"""The lease keeper: renews over a blocking connection of its own, from a thread that no handler can stop (E20)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from redis.exceptions import NoScriptError

from treadle.core.store import Claim
from treadle.stores.redis.address import Address, close_blocking_client
from treadle.stores.redis.moves import CLAIMED_AT_ONCE, renewal
from treadle.stores.redis.pieces import pieces
from treadle.stores.redis.script import script
from treadle.stores.redis.trouble import translated


class RedisLeaseKeeper:
    """As `JobStore.renew`, for a thread. Connects at first use."""

    def __init__(self, address: Address, tag: str) -> None:
        self._address = address
        self._tag = tag
        self._client = address.blocking_client() if not address.cluster else None

    def renew(self, claims: Sequence[Claim], lease: float, now: datetime | None = None) -> set[Claim]:
        """Lease the jobs anew; answers the claims that held. Raises `StoreUnavailable`, `StoreError`."""
        renew = script("renew")
        held: set[Claim] = set()
        with translated(self._address.shown):
            if self._client is None:  # a cluster's client connects when it is made
                self._client = self._address.blocking_client()
            for piece in pieces(claims, CLAIMED_AT_ONCE):
                arguments = renewal(piece, lease, now)
                try:
                    places = self._client.evalsha(renew.digest, 1, self._tag, *arguments)
                except NoScriptError:
                    places = self._client.eval(renew.source, 1, self._tag, *arguments)
                held.update(piece[place - 1] for place in places)
        return held

    def close(self) -> None:
        """Give the connection up; safe twice."""
        if self._client is not None:
            close_blocking_client(self._client)
