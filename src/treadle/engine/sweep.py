"""A sweep: a bounded step, repeated until nothing is left of what there was at the beginning (E17, E29, L5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from treadle.core.filter import JobFilter
from treadle.core.store import Store
from treadle.engine.clock import EngineClock

STEP = 500  # jobs

Step: TypeAlias = Callable[[JobFilter, int, datetime], Awaitable[int]]
"""Does the jobs that match, so many at most, as of that moment; answers how many it did: fewer where no more match."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Goes over the jobs that match as they were at one moment, by the store's own clock.

    Beside workers there would be no end to it otherwise: jobs finish and become old enough as fast as they are deleted, and
    dead letters that were sent round again die again, and would be sent round once more.
    """

    begun: datetime

    @classmethod
    async def begin(cls, store: Store, clock: EngineClock) -> Sweep:
        """A sweep of what there is now."""
        return cls((await store.due_schedules(1, now=clock.for_store())).now)

    async def over(self, which: JobFilter, step: Step, *, limit: int | None = None) -> int:
        """Repeat the step, for at most `limit` jobs; answers how many it did.

        Without an age the first step has none either: it can hold nothing twice, and has the jobs of a clock that has been
        set back since, which no age finds. Those of later steps must have been finished at the beginning.
        """
        done = 0
        while (size := STEP if limit is None else min(STEP, limit - done)) > 0:
            number = await step(which, size, self.begun)
            done += number
            if number < size:
                break
            if which.older_than is None:
                which = replace(which, older_than=0.0)
        return done
