"""Operations on stored jobs: get, list, stats, redrive, delete, prune. Every face, the command and the console call these."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from treadle.core.errors import Conflict, NotFound
from treadle.core.filter import JobFilter
from treadle.core.job import Job, State
from treadle.core.policies.limits import owned_by_a_face
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Redriven, Stats, Store
from treadle.engine.clock import EngineClock
from treadle.engine.sweep import Sweep

FIRST_PAGE = 50  # before anything is known of how large the payloads are
PAGE = 500
PAGE_LOAD = 8 * 1024 * 1024  # characters of payload
DEAD = frozenset({State.DEAD})


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune matched, and what it deleted: nothing in a dry run (L5)."""

    matched: int
    deleted: int


@dataclass(slots=True)
class _Round:
    """What a redrive has done so far."""

    progress: Callable[[int], None] | None
    revived: dict[str, None] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        return len(self.revived) + len(self.dropped)


class Operations:
    """What can be asked of, and done to, the jobs of a store."""

    def __init__(self, store: Store, clock: EngineClock) -> None:
        self._store = store
        self._clock = clock

    def _now(self) -> datetime | None:
        return self._clock.for_store()

    async def get(self, id: str) -> Job | None:
        """The job with its failures, or None."""
        found = await self._store.get([id])
        return found[0] if found else None

    async def iterate(self, which: JobFilter, limit: int | None = None) -> AsyncIterator[Job]:
        """The matching jobs, newest first, read page by page."""
        before: str | None = None
        left = limit
        most = FIRST_PAGE
        while left is None or left > 0:
            size = most if left is None else min(most, left)
            page = await self._store.find(which, limit=size, before=before, now=self._now())
            for job in page:
                yield job
            if len(page) < size:
                return
            before = page[-1].id
            # Payloads may be large: the next page is as long as keeps it within PAGE_LOAD, going by this one.
            load = sum(len(job.payload_json) for job in page) / len(page)
            most = max(1, min(PAGE, int(PAGE_LOAD / max(load, 1.0))))
            left = None if left is None else left - len(page)

    async def list(self, which: JobFilter, limit: int | None = None) -> Sequence[Job]:
        """The matching jobs, newest first."""
        return [job async for job in self.iterate(which, limit)]

    async def stats(self) -> Stats:
        """The aggregate of L6."""
        return await self._store.stats(now=self._now())

    async def pending_names(self, queues: Sequence[str] | None = None) -> Sequence[str]:
        """The names of pending jobs."""
        return await self._store.pending_names(queues)

    async def redrive(self, id: str) -> Redriven:
        """Send one dead letter round again, by the rule of its queue (E17). Raises `NotFound` or `Conflict`."""
        job = await self._stored(id)
        if job.state is not State.DEAD:
            raise Conflict(f"job {id} is {job.state}; only dead jobs can be retried")
        done = await self._store.redrive(JobFilter(ids=(id,)), RedrivePolicy.of_queue(job.queue), now=self._now())
        if not done.revived and not done.dropped:
            job = await self._stored(id)
            raise Conflict(f"job {id} is {job.state}; only dead jobs can be retried")
        return done

    async def redrive_all(
        self, which: JobFilter, progress: Callable[[int], None] | None = None, *, limit: int | None = None
    ) -> Redriven:
        """Send all matching dead letters round again, oldest first, at most `limit`, each by the rule of its queue (E17).

        One that is dead again before the others have had their turn is not sent round twice.
        """
        done = _Round(progress)
        sweep = await Sweep.begin(self._store, self._clock)
        for part, policy in await self._by_rule(which):
            await sweep.over(part, partial(self._revive, policy, done), limit=None if limit is None else limit - done.number)
        return Redriven([*done.revived], done.dropped)

    async def _revive(self, policy: RedrivePolicy, done: _Round, which: JobFilter, size: int, begun: datetime) -> int:
        step = await self._store.redrive(which, policy, limit=size, now=begun)
        before = done.number
        done.revived.update(dict.fromkeys(step.revived))
        done.dropped += step.dropped
        if done.progress is not None:
            done.progress(done.number)
        if done.number == before:
            return 0  # all were known already, as where an injected clock stands still: this would go on for ever
        return len(step.revived) + len(step.dropped)

    async def _by_rule(self, which: JobFilter) -> Sequence[tuple[JobFilter, RedrivePolicy]]:
        """The dead among them, in parts that have one rule each."""
        dead = replace(which, states=DEAD)
        if which.queues is not None:
            queues, parts = which.queues, []
        else:
            parts = [(replace(dead, of_faces=False), RedrivePolicy.RESET)]
            queues = frozenset() if which.of_faces is False else await self._queues_of_faces()
        return [
            *parts,
            *((replace(dead, queues=frozenset({queue})), RedrivePolicy.of_queue(queue)) for queue in sorted(queues)),
        ]

    async def _queues_of_faces(self) -> frozenset[str]:
        """The queues of the functions service and of plugins that have dead letters now."""
        counts = (await self._store.tally()).counts
        return frozenset(queue for queue, _, state in counts if state is State.DEAD and owned_by_a_face(queue))

    async def run_now(self, id: str) -> None:
        """Make a pending job due now (E2). Raises `NotFound` or `Conflict`."""
        if not await self._store.run_now(JobFilter(ids=(id,)), now=self._now()):
            job = await self._stored(id)
            raise Conflict(f"job {id} is {job.state}; only pending jobs can be run now")

    async def delete(self, id: str) -> None:
        """Delete a job that is not running (E2). Raises `NotFound` or `Conflict`."""
        if not await self._store.delete(JobFilter(ids=(id,)), now=self._now()):
            job = await self._stored(id)
            raise Conflict(f"job {id} is {job.state}; a running job cannot be deleted")

    async def prune(self, which: JobFilter, *, dry_run: bool = False, progress: Callable[[int], None] | None = None) -> Pruned:
        """Delete matching jobs in bounded steps; a dry run counts them by the very same predicate (L5)."""
        if dry_run:
            return Pruned(await self._store.count(which, now=self._now()), 0)
        deleted = 0

        async def delete(which: JobFilter, size: int, begun: datetime) -> int:
            nonlocal deleted
            step = await self._store.delete(which, limit=size, now=begun)
            deleted += step
            if progress is not None:
                progress(deleted)
            return step

        await (await Sweep.begin(self._store, self._clock)).over(which, delete)
        return Pruned(deleted, deleted)

    async def _stored(self, id: str) -> Job:
        job = await self.get(id)
        if job is None:
            raise NotFound(f"there is no job {id!r}")
        return job
