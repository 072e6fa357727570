"""The reclaimer: takes back expired leases, of whatever names (E21)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from treadle.core.job import Job, NewJob
from treadle.core.outcome import Dead, Outcome
from treadle.core.schedule import INTERVAL_PREFIX, Interval
from treadle.core.store import Claim, Expired, Reclaim, Store
from treadle.core.transitions import on_expired
from treadle.engine.clock import EngineClock
from treadle.engine.fields import fields
from treadle.engine.observer import Observer
from treadle.engine.service import Service

BATCH = 500


class Reclaimer(Service):
    """Reads what is expired, decides in core, and writes it where the lease is still the same and still past.

    What still runs in this process is kept instead: after a pause of the machine, or a jump of its clock, a lease may be seen
    here before it is renewed. `keep` renews those of the claims that are held here, and answers them.
    """

    def __init__(
        self,
        store: Store,
        clock: EngineClock,
        logger: logging.Logger,
        interval: float,
        copy: Callable[[Interval], NewJob],
        reclaimed: Callable[[], None],
        observer: Observer | None = None,
        keep: Callable[[Iterable[Claim]], Awaitable[set[Claim]]] | None = None,
    ) -> None:
        super().__init__(interval, clock, logger)
        self._store = store
        self._copy = copy
        self._keep = keep
        self._reclaimed = reclaimed
        self._observer = observer

    async def run_once(self) -> None:
        """Take back all that is expired now."""
        while True:
            now = self._clock.for_store()
            expired = await self._store.expired(BATCH, now=now)
            if not expired:
                return
            kept = set() if self._keep is None else await self._keep([one.claim for one in expired])
            reclaims = await self._decide([one for one in expired if one.claim not in kept])
            taken = await self._store.reclaim(reclaims, now=now)
            for one in reclaims:
                if one.expired.claim in taken:
                    self._tell(one.expired.job, one.outcome)
            if taken:
                self._reclaimed()
            if len(expired) < BATCH or not (taken or kept):
                return

    async def _decide(self, expired: list[Expired]) -> list[Reclaim]:
        """The last run of an interval ends here too, whoever knows its name: its next copy comes from the stored interval."""
        decided = [(one, on_expired(one.job)) for one in expired]
        ended = {
            one.job.schedule
            for one, outcome in decided
            if isinstance(outcome, Dead) and one.job.schedule and one.job.schedule.startswith(INTERVAL_PREFIX)
        }
        intervals = {interval.schedule: interval for interval in await self._store.intervals(sorted(ended))} if ended else {}
        reclaims = []
        for one, outcome in decided:
            interval = intervals.get(one.job.schedule or "")
            following = self._copy(interval) if interval is not None and isinstance(outcome, Dead) else None
            reclaims.append(Reclaim(one, outcome, following))
        return reclaims

    def _tell(self, job: Job, outcome: Outcome) -> None:
        self._logger.warning(
            "the lease of %s %s ran out at attempt %d of %s (worker %s); it was taken back",
            job.name,
            job.id,
            job.attempts,
            job.max_attempts,
            job.worker,
            extra=fields(job),
        )
        if self._observer is not None:
            self._observer.reclaimed(job, outcome)
