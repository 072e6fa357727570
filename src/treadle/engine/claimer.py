"""The claimer: asks the store for what the free slots can start at once, and after answers that were lost (E19, E21, E28)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from treadle.core.job import Job
from treadle.core.profile import Profile
from treadle.core.store import Claim, Demand, JobStore
from treadle.engine.clock import EngineClock
from treadle.engine.registry import Registry

SPARE_THREADS = 8  # threads that handlers past their timeout may go on holding, beside one a slot (E23)


class Claimer:
    """Claims under a fresh token each time; `next_in` then says how long there is nothing more to claim."""

    def __init__(
        self,
        store: JobStore,
        registry: Registry,
        profile: Profile,
        *,
        concurrency: int,
        queues: tuple[str, ...] | None,
        poll_interval: float,
        worker_id: str,
        clock: EngineClock,
        logger: logging.Logger,
        threads_taken: Callable[[], int],
    ) -> None:
        self._store = store
        self._registry = registry
        self._profile = profile
        self._queues = queues
        self._poll_interval = poll_interval
        self._worker_id = worker_id
        self._clock = clock
        self._logger = logger
        self._threads_taken = threads_taken
        self._most_threads = SPARE_THREADS + concurrency
        self.at_bound = False  # whether plain handlers are left out, all threads being taken
        self._lost: dict[str, float] = {}
        self.next_in = 0.0

    async def claim(self, free: int) -> list[tuple[Claim, Job]]:
        """Claim at most `free` jobs of the registered names.

        After a claim whose answer was lost, the jobs it took may come with a later one, and so be more than asked for.
        """
        names = self._names()
        if free <= 0 or not names:
            self.next_in = self._poll_interval
            return []
        if self._lost:
            found = await self._recall()
            if found:
                self.next_in = 0.0
                return found
        token = os.urandom(12).hex()
        demand = Demand(free, self._queues, names, self._profile.max_attempts)
        try:
            claimed = await self._store.claim(
                token, [demand], worker=self._worker_id, lease=self._profile.lease, now=self._clock.for_store()
            )
        except BaseException:
            self._lost[token] = self._clock.seconds() + self._profile.lease
            raise
        self.next_in = self._poll_interval if claimed.next_in is None else claimed.next_in
        return [(Claim(job.id, token), job) for job in claimed.jobs]

    async def _recall(self) -> list[tuple[Claim, Job]]:
        """The jobs of claims whose answers were lost.

        A token is asked after until its leases are over: the lost statement may still be on its way at the first time.
        """
        held = await self._store.held(list(self._lost))
        now = self._clock.seconds()
        found = {claim.token for claim, _ in held}
        if held:  # little of the lease may be left, and nobody has renewed it
            claims = [claim for claim, _ in held]
            still = await self._store.renew(claims, self._profile.lease, now=self._clock.for_store())
            held = [(claim, job) for claim, job in held if claim in still]
        self._lost = {token: until for token, until in self._lost.items() if now < until and token not in found}
        return held

    def _names(self) -> dict[str, int]:
        taken = self._threads_taken()
        at_bound = taken >= self._most_threads
        if at_bound and not self.at_bound:
            self._logger.error(
                "%d threads are held by plain handlers, most past their timeout: none is claimed until one ends (limit %d)",
                taken,
                self._most_threads,
            )
        self.at_bound = at_bound
        return self._registry.claimable(self._profile.max_attempts, plain=not at_bound)
