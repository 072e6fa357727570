"""Counting all jobs by queue, name and state, a slice at a time, so that a million of them hold nobody up (F15)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

from treadle.core.job import Job, State

_AT_ONCE = 10_000  # jobs: a few milliseconds
# The state as plain text, since a member's own hash is computed in Python, each time.
_place = attrgetter("queue", "name", "state._value_")


async def counts(jobs: Sequence[Job]) -> dict[tuple[str, str, State], int]:
    """How many there are of each queue, name and state; the jobs cannot change, so that no lock is held."""
    found: Counter[tuple[str, str, str]] = Counter()
    for start in range(0, len(jobs), _AT_ONCE):
        if start:
            await asyncio.sleep(0)
        found.update(map(_place, jobs[start : start + _AT_ONCE]))
    return {(queue, name, State(state)): number for (queue, name, state), number in found.items()}
