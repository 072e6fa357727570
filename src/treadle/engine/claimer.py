"""The claimer: asks the store for what the free slots can start at once, and after answers that were lost (E19, E21, E28)."""

from __future__ import annotations

import os
from collections.abc import Callable

from treadle.core.job import Job
from treadle.core.store import Claim
from treadle.engine.setup import Setup

SPARE_THREADS = 8  # threads that handlers past their timeout may go on holding, beside one a slot (E23)


class Claimer:
    """Claims under a fresh token each time; `next_in` then says how long there is nothing more to claim."""

    def __init__(self, setup: Setup, threads_taken: Callable[[], int]) -> None:
        self._setup = setup
        self._store = setup.store
        self._clock = setup.clock
        self._threads_taken = threads_taken
        self._most_threads = SPARE_THREADS + setup.settings.concurrency
        self._promised = 0  # threads that claims under way may come to need
        self._at_bound = False  # whether plain handlers are left out, all threads being taken
        self.held_back = False  # whether jobs were left out that a slot, a thread or a limit must become free for
        self._lost: dict[str, float] = {}
        self.next_in = 0.0

    async def claim(self, free: int) -> list[tuple[Claim, Job]]:
        """Claim at most `free` jobs of the registered names.

        After a claim whose answer was lost, the jobs it took may come with a later one, and so be more than asked for.
        """
        if free <= 0:
            self.next_in = self._setup.settings.poll_interval
            return []
        if self._lost:  # first, since what they took may be all there was to ask for
            found = await self._recall()
            if found:
                self.next_in = 0.0
                return found
        settings, profile = self._setup.settings, self._setup.profile
        plain = free  # the most jobs of plain handlers that may be among them
        if free > self._most_threads - self._threads_taken() - self._promised:
            plain = self._room()
        else:
            self._at_bound = False
        self._promised += plain
        try:
            # Where few threads are left, all names are asked for as many: of one demand come the best of all, in order.
            demands, complete = await self._setup.registry.demands(
                plain or free, settings.queues, profile.max_attempts, plain=plain > 0
            )
            self.held_back = plain < free or not complete
            if not demands:
                self.next_in = settings.poll_interval
                return []
            token = os.urandom(12).hex()
            asked = self._clock.seconds()
            try:
                claimed = await self._store.claim(
                    token, demands, worker=settings.worker_id, lease=profile.lease, now=self._clock.for_store()
                )
            except BaseException:
                self._lost[token] = self._clock.seconds() + profile.lease
                raise
        finally:
            self._promised -= plain
        if self._setup.observer is not None:
            self._setup.observer.claimed(len(claimed.jobs), self._clock.seconds() - asked)
        self.next_in = settings.poll_interval if claimed.next_in is None else claimed.next_in
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
            still = await self._store.renew(claims, self._setup.profile.lease, now=self._clock.for_store())
            held = [(claim, job) for claim, job in held if claim in still]
        self._lost = {token: until for token, until in self._lost.items() if now < until and token not in found}
        return held

    def _room(self) -> int:
        """How many threads may be taken yet; that none is left is told once."""
        taken = self._threads_taken()
        at_bound = taken >= self._most_threads
        if at_bound and not self._at_bound:
            self._setup.logger.error(
                "%d threads are held by plain handlers, most past their timeout: none is claimed until one ends (limit %d)",
                taken,
                self._most_threads,
            )
        self._at_bound = at_bound
        return max(0, self._most_threads - taken - self._promised)
