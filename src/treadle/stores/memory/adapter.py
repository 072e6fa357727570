"""The memory store: the contract of `core/store.py` over one ledger and one lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from treadle.core.filter import JobFilter
from treadle.core.job import Enqueued, Job, NewJob, State
from treadle.core.payload import JSON
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval, Schedule
from treadle.core.store import (
    Claim,
    Claimed,
    Demand,
    Document,
    DueSchedules,
    Ending,
    Expired,
    Firing,
    Listener,
    Reclaim,
    Redriven,
    Stats,
    Tally,
)
from treadle.core.transfer import Mark, checked_fence
from treadle.stores.memory import claiming, ending, selection, tallying, upkeep
from treadle.stores.memory.documents import DocumentShelf
from treadle.stores.memory.ledger import Ledger
from treadle.stores.memory.schedules import ScheduleShelf
from treadle.stores.memory.transfer import MemoryTransfer
from treadle.stores.memory.wakeups import Wakers

_DUPLICATES_SHOWN = 10


class MemoryStore(MemoryTransfer):
    """Jobs in this process and for its life. Any thread and event loop may use it; nothing in it ever waits.

    Each operation is one step under one lock, and reads the clock inside it (S9).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ledger = Ledger()
        self._documents = DocumentShelf()
        self._schedules = ScheduleShelf()
        self._wakers = Wakers()
        self._mark: Mark | None = None

    # --- moving jobs

    async def enqueue(self, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """Store the jobs; see `JobStore.enqueue` (E4, E6, E7, E9)."""
        with self._lock:
            checked_fence(self._mark)
            answers = self._ledger.insert(jobs, _at(now))
        self._wakers.wake(self._ledger.lanes.arrivals)
        return answers

    async def claim(
        self, token: str, demands: Sequence[Demand], *, worker: str, lease: float, now: datetime | None = None
    ) -> Claimed:
        """Take due jobs; see `JobStore.claim` (E3, E28)."""
        with self._lock:
            checked_fence(self._mark)
            return claiming.claim(self._ledger, token, demands, worker, lease, _at(now))

    async def held(self, tokens: Sequence[str]) -> list[tuple[Claim, Job]]:
        """The running jobs of these tokens, in the order of claiming (E21)."""
        wanted = frozenset(tokens)
        with self._lock:
            jobs = self._ledger.jobs
            return [(Claim(job_id, token), jobs[job_id]) for job_id, token in self._ledger.tokens.items() if token in wanted]

    async def renew(self, claims: Sequence[Claim], lease: float, *, now: datetime | None = None) -> set[Claim]:
        """Lease the jobs anew; see `JobStore.renew` (E20)."""
        return self._renew(claims, lease, now)

    async def finish(self, endings: Sequence[Ending], *, now: datetime | None = None) -> set[Claim]:
        """Apply outcomes; see `JobStore.finish` (E22, T1)."""
        with self._lock:
            held = ending.finish(self._ledger, endings, _at(now))
        self._wakers.wake(self._ledger.lanes.arrivals)
        return held

    async def expired(self, limit: int, *, now: datetime | None = None) -> list[Expired]:
        """Running jobs whose lease is past; see `JobStore.expired` (E21)."""
        with self._lock:
            return ending.expired(self._ledger, limit, _at(now))

    async def reclaim(self, reclaims: Sequence[Reclaim], *, now: datetime | None = None) -> set[Claim]:
        """Take expired jobs back; see `JobStore.reclaim` (E21)."""
        with self._lock:
            taken = ending.reclaim(self._ledger, reclaims, _at(now))
        self._wakers.wake(self._ledger.lanes.arrivals)
        return taken

    async def redrive(
        self, which: JobFilter, policy: RedrivePolicy, *, limit: int | None = None, now: datetime | None = None
    ) -> Redriven:
        """Send dead letters round again; see `JobStore.redrive` (E17)."""
        with self._lock:
            checked_fence(self._mark)
            redriven = upkeep.redrive(self._ledger, which, policy, limit, _at(now))
        self._wakers.wake(self._ledger.lanes.arrivals)
        return redriven

    async def run_now(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """Make pending jobs due now; see `JobStore.run_now` (E2)."""
        with self._lock:
            checked_fence(self._mark)
            number = upkeep.run_now(self._ledger, which, _at(now))
        self._wakers.wake(self._ledger.lanes.arrivals)
        return number

    async def delete(self, which: JobFilter, *, limit: int | None = None, now: datetime | None = None) -> int:
        """Delete jobs that do not run; see `JobStore.delete` (E2, E29)."""
        with self._lock:
            checked_fence(self._mark)
            return upkeep.delete(self._ledger, which, limit, _at(now))

    # --- intervals

    async def ensure(self, intervals: Sequence[tuple[Interval, str]], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Remember intervals and put their copies back; see `IntervalStore.ensure` (T1 to T4)."""
        with self._lock:
            checked_fence(self._mark)
            at = _at(now)
            answers = [self._ledger.ensure(interval, job_id, at) for interval, job_id in intervals]
        self._wakers.wake(self._ledger.lanes.arrivals)
        return answers

    async def intervals(self, schedules: Sequence[str]) -> list[Interval]:
        """The remembered intervals of these schedule names."""
        with self._lock:
            found = [self._ledger.intervals.get(schedule) for schedule in schedules]
        return [interval for interval in found if interval is not None]

    # --- cron schedules

    async def put_schedule(self, schedule: Schedule, *, expect: int | None = None) -> Schedule | None:
        """Store the schedule if the revision `expect` is there; see `ScheduleStore.put_schedule` (T9)."""
        with self._lock:
            checked_fence(self._mark)
            return self._schedules.put(schedule, expect)

    async def get_schedule(self, name: str) -> Schedule | None:
        """The schedule of that name."""
        with self._lock:
            return self._schedules.get(name)

    async def list_schedules(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> list[Schedule]:
        """Schedules by name (T14)."""
        with self._lock:
            return [*self._schedules.list(prefix, after, limit)]

    async def delete_schedule(self, name: str) -> bool:
        """Delete the schedule; its jobs stay (T14)."""
        with self._lock:
            checked_fence(self._mark)
            return self._schedules.delete(name)

    async def due_schedules(self, limit: int, *, now: datetime | None = None) -> DueSchedules:
        """What is due and not paused; see `ScheduleStore.due_schedules`."""
        with self._lock:
            return self._schedules.due(limit, _at(now))

    async def fire(self, firings: Sequence[Firing], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Advance each schedule and enqueue its job; see `ScheduleStore.fire` (T11, T12)."""
        with self._lock:
            checked_fence(self._mark)
            answers = self._schedules.fire(self._ledger, firings, _at(now))
        self._wakers.wake(self._ledger.lanes.arrivals)
        return [*answers]

    # --- reading

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The stored jobs of these ids, in their order."""
        with self._lock:
            jobs = self._ledger.jobs
            return [jobs[job_id] for job_id in ids if job_id in jobs]

    async def find(self, which: JobFilter, *, limit: int, before: str | None = None, now: datetime | None = None) -> list[Job]:
        """Matching jobs, newest id first."""
        with self._lock:
            return selection.select(self._ledger, which, _at(now), limit=limit, newest_first=True, before=before)

    async def count(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """How many jobs match."""
        with self._lock:
            return selection.number(self._ledger, which, _at(now))

    async def stats(self, *, now: datetime | None = None) -> Stats:
        """The aggregate of L6, from counts that are kept."""
        with self._lock:
            ledger = self._ledger
            repeated = ledger.lanes.repeated()
            return Stats(
                pending=ledger.number(State.PENDING),
                running=ledger.number(State.RUNNING),
                done=ledger.number(State.DONE),
                dead=ledger.number(State.DEAD),
                next_run_at=ledger.lanes.soonest(),
                duplicates=dict(sorted(repeated.items(), key=lambda item: (-item[1], item[0]))[:_DUPLICATES_SHOWN]),
                duplicate_names=len(repeated),
            )

    async def tally(self) -> Tally:
        """Jobs by queue, name and state, of one moment; other tasks get their turns while they are counted (S8)."""
        with self._lock:
            jobs, oldest = list(self._ledger.jobs.values()), self._ledger.lanes.oldest()
        return Tally(await tallying.counts(jobs), oldest)

    async def pending_names(self, queues: Sequence[str] | None = None) -> list[str]:
        """The names of pending jobs, sorted (E19)."""
        with self._lock:
            return self._ledger.lanes.names(queues)

    async def due(self, queues: Sequence[str], *, now: datetime | None = None) -> set[str]:
        """Which of the queues have a job that could be claimed now."""
        with self._lock:
            at = _at(now)
            return {queue for queue in queues if self._ledger.lanes.due(queue, at)}

    # --- documents

    async def get_document(self, namespace: str, key: str, *, now: datetime | None = None) -> Document | None:
        """The document, unless it is absent or has expired (S12)."""
        with self._lock:
            return self._documents.get(namespace, key, _at(now))

    async def put_document(
        self,
        namespace: str,
        key: str,
        value: JSON,
        *,
        expect: int | None = None,
        expires_in: float | None = None,
        now: datetime | None = None,
    ) -> Document | None:
        """Write the value, by compare-and-set where `expect` is given (S12). Raises `InvalidArgument` if it is not JSON."""
        with self._lock:
            checked_fence(self._mark)
            return self._documents.put(namespace, key, value, expect, expires_in, _at(now))

    async def delete_document(
        self, namespace: str, key: str, *, expect: int | None = None, now: datetime | None = None
    ) -> bool:
        """Delete the document; whether it was there (S12)."""
        with self._lock:
            checked_fence(self._mark)
            return self._documents.delete(namespace, key, expect, _at(now))

    async def list_documents(
        self, namespace: str, *, prefix: str = "", after: str = "", limit: int = 1000, now: datetime | None = None
    ) -> list[Document]:
        """Documents by key, in code-point order (S12)."""
        with self._lock:
            return self._documents.list(namespace, prefix, after, limit, _at(now))

    # --- the rest

    async def migrate(self) -> str:
        """Answer that there is nothing to do (S4)."""
        return "The memory store has no tables; there is nothing to migrate."

    def lease_keeper(self) -> MemoryLeaseKeeper:
        """A keeper for a thread of its own; the lock is never held long enough to be in its way (E20)."""
        return MemoryLeaseKeeper(self._renew)

    async def listen(self, wake: Callable[[], None]) -> Listener:
        """Call `wake` whenever jobs may have become claimable (E26)."""
        return self._wakers.listen(wake)

    async def close(self) -> None:
        """Give nothing up: the jobs stay for a later use of this store object."""

    def _renew(self, claims: Sequence[Claim], lease: float, now: datetime | None = None) -> set[Claim]:
        with self._lock:
            return ending.renew(self._ledger, claims, lease, _at(now))


class MemoryLeaseKeeper:
    """Renews leases of a memory store without an event loop (E20)."""

    def __init__(self, renew: Callable[[Sequence[Claim], float, datetime | None], set[Claim]]) -> None:
        self._renew = renew

    def renew(self, claims: Sequence[Claim], lease: float, now: datetime | None = None) -> set[Claim]:
        """As `MemoryStore.renew`."""
        return self._renew(claims, lease, now)

    def close(self) -> None:
        """Do nothing: there is no connection."""


def _at(now: datetime | None) -> datetime:
    return datetime.now(UTC) if now is None else now
