"""The part of the contract that a store has if its keys may have to be waited for (E10)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from treadle.core.job import Enqueued, NewJob


@runtime_checkable
class KeysWait(Protocol):
    """Optional: a store whose enqueue waits for a key that somebody's open transaction holds, while others go on (E10)."""

    @property
    def waiting_at_most(self) -> int:
        """How many enqueues may wait at once in one event loop, from 1, without keeping everybody else waiting."""
        ...

    async def enqueue_unless_held(self, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued] | None:
        """As `enqueue`, but None, with nothing stored, where it would have to wait."""
        ...
