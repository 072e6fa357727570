"""The contract between the engine and the stores: every operation takes a batch and is one atomic step (S1, S2).

`now=None` lets the store's own clock decide, inside the statement; a value replaces it, for tests and injected clocks.
Outcomes and delays are durations, so a worker's clock never enters a stored moment (S9). One that would end after the year
9999 ends at its last microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

from treadle.core.filter import JobFilter
from treadle.core.job import Enqueued, Job, NewJob, State
from treadle.core.outcome import Outcome
from treadle.core.payload import JSON
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval, Schedule


class Claim(NamedTuple):
    """A worker's hold on a job. Whoever cannot name both changes nothing (E22)."""

    id: str
    token: str


@dataclass(frozen=True, slots=True)
class Demand:
    """What a claim asks for: at most `limit` jobs, best first over all the queues and names together (E28).

    `queues` None means every queue that no face owns. `names` maps each name to the `max_attempts` that a job
    without one gets at its first claim; None means any name, with `max_attempts` for all.
    """

    limit: int
    queues: tuple[str, ...] | None = None
    names: Mapping[str, int] | None = None
    max_attempts: int = 5


@dataclass(frozen=True, slots=True)
class Claimed:
    """The jobs that a claim took, in order of claiming, and how many seconds until the next one is due.

    `next_in` is exact where fewer jobs came than were asked for, 0.0 where more may be ready, None where none waits.
    """

    jobs: Sequence[Job]
    next_in: float | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """What a claimed job became, and the next copy of its interval, stored in the same step if it is done or dead (T1)."""

    claim: Claim
    outcome: Outcome
    following: NewJob | None = None


@dataclass(frozen=True, slots=True)
class Expired:
    """A running job whose lease is past. `job.lease_until` and the token fence its reclaiming (E21)."""

    claim: Claim
    job: Job


@dataclass(frozen=True, slots=True)
class Reclaim:
    """What an expired job becomes, if its lease is still the same and still past."""

    expired: Expired
    outcome: Outcome
    following: NewJob | None = None


@dataclass(frozen=True, slots=True)
class Redriven:
    """Ids of dead letters sent round again, and of those dropped because an unfinished job holds their key (E17)."""

    revived: Sequence[str] = ()
    dropped: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """One aggregate over all jobs (L6).

    `duplicates` has the ten names with the most pending copies, of those with more than one, ties by name.
    """

    pending: int
    running: int
    done: int
    dead: int
    next_run_at: datetime | None
    duplicates: Mapping[str, int]
    duplicate_names: int


@dataclass(frozen=True, slots=True)
class Tally:
    """Jobs by queue, name and state, none where there are none; by queue the earliest `run_at` of its pending jobs."""

    counts: Mapping[tuple[str, str, State], int]
    oldest: Mapping[str, datetime]


@dataclass(frozen=True, slots=True)
class Document:
    """A small stored value that is not a job (S12).

    `revision` goes up by one with each write, from 1; a document that was deleted or has expired begins again.
    """

    key: str
    value: JSON
    revision: int
    expires_at: datetime | None = None


class JobStore(Protocol):
    """What moves jobs. Fewer than `limit` are redriven or deleted only where no more match, whatever others do meanwhile."""

    async def enqueue(self, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """Store the jobs, answering each in order. A job whose id or key is already held is answered with the holder.

        Safe to repeat: the ids are the caller's. Keys hold within the batch too: its first job wins.
        """
        ...

    async def claim(
        self, token: str, demands: Sequence[Demand], *, worker: str, lease: float, now: datetime | None = None
    ) -> Claimed:
        """Take due jobs: running, attempts up by one, leased for `lease` seconds under `token` (E3, E28).

        `started_at` is that of the latest claim and stays; worker and lease are set only while the job runs. Never filters
        on attempts, since a redriven job may have used up its count (E17).
        """
        ...

    async def held(self, tokens: Sequence[str]) -> list[tuple[Claim, Job]]:
        """The running jobs that these tokens hold: how a claim whose answer was lost is repeated (E21)."""
        ...

    async def renew(self, claims: Sequence[Claim], lease: float, *, now: datetime | None = None) -> set[Claim]:
        """Lease the jobs for `lease` seconds from now; answers the claims that still held (E20)."""
        ...

    async def finish(self, endings: Sequence[Ending], *, now: datetime | None = None) -> set[Claim]:
        """Apply the outcomes whose claims still hold, and answer those claims; the others change nothing (E22)."""
        ...

    async def expired(self, limit: int, *, now: datetime | None = None) -> list[Expired]:
        """Running jobs whose lease is past, longest past first, of every queue and name (E21).

        A lease is past from `lease_until` on; its claim holds all the same until it is reclaimed.
        """
        ...

    async def reclaim(self, reclaims: Sequence[Reclaim], *, now: datetime | None = None) -> set[Claim]:
        """Apply outcomes to expired jobs whose lease is unchanged and past; answers the claims taken back (E21)."""
        ...

    async def redrive(
        self, which: JobFilter, policy: RedrivePolicy, *, limit: int | None = None, now: datetime | None = None
    ) -> Redriven:
        """Send dead jobs that match round again, oldest id first, in bounded steps (E17).

        A dead letter whose dedupe key an unfinished job holds, or an older dead letter of the same call, is deleted
        and answered as dropped, and counts towards the limit. A schedule key is cleared. RESET starts attempts and
        interruptions from 0; the last error and the failures stay.
        """
        ...

    async def run_now(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """Make pending jobs that match due now; answers how many there were (E2)."""
        ...

    async def delete(self, which: JobFilter, *, limit: int | None = None, now: datetime | None = None) -> int:
        """Delete jobs that match, never running ones, oldest id first, or by age the longest finished; how many (E2, E29)."""
        ...


class IntervalStore(Protocol):
    """What keeps intervals going (T1 to T4)."""

    async def ensure(self, intervals: Sequence[tuple[Interval, str]], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Remember each interval, the last one wins, and put its copy back, under the id given, where none is unfinished.

        A first copy is due now; one put back is due at the last `run_at` of the one before. None where an unfinished copy
        exists.
        """
        ...

    async def intervals(self, schedules: Sequence[str]) -> list[Interval]:
        """The remembered intervals of these schedule names."""
        ...


@dataclass(frozen=True, slots=True)
class DueSchedules:
    """Schedules to fire at the store's `now`, earliest first, and how many seconds until the next one is due, None for never.

    Among them are those whose `last_at` lies more than `REWOUND` seconds after now: the clock was set back, and their
    `next_at`, computed from a time that was none, would leave a silence.
    """

    now: datetime
    schedules: Sequence[Schedule]
    next_in: float | None


REWOUND = 60.0


@dataclass(frozen=True, slots=True)
class Firing:
    """One firing: the schedule as it was read, the instant it is due next, and the job to enqueue."""

    schedule: Schedule
    next_at: datetime | None
    job: NewJob


@runtime_checkable
class ScheduleStore(Protocol):
    """What keeps cron schedules (T5 to T14)."""

    async def put_schedule(self, schedule: Schedule, *, expect: int | None = None) -> Schedule | None:
        """Store the schedule under its name; `expect` is the revision that must be there (0: none), None stores in any case.

        Answers it as stored, its revision one more than what was there, or None where another revision was there.
        """
        ...

    async def get_schedule(self, name: str) -> Schedule | None:
        """The schedule of that name."""
        ...

    async def list_schedules(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> list[Schedule]:
        """Schedules whose names begin with `prefix` and are greater than `after`, by name in code-point order."""
        ...

    async def delete_schedule(self, name: str) -> bool:
        """Delete the schedule; its jobs stay. Answers whether it was there."""
        ...

    async def due_schedules(self, limit: int, *, now: datetime | None = None) -> DueSchedules:
        """The schedules that are due and not paused, at most `limit`, through an index."""
        ...

    async def fire(self, firings: Sequence[Firing], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Advance each schedule and enqueue its job in one step (T12).

        Only where the stored schedule has the revision and the `next_at` that were read, and is not paused; None
        otherwise. `last_at` becomes now, the revision goes up. A job whose key an unfinished firing holds is not enqueued,
        and answered with the holder, `created` False; the schedule is advanced all the same, its `last_at` unchanged (T11).
        """
        ...


class Inspector(Protocol):
    """What reads and changes nothing."""

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The stored jobs of these ids with their failures, in the order of the ids; unknown ids are left out."""
        ...

    async def find(self, which: JobFilter, *, limit: int, before: str | None = None, now: datetime | None = None) -> list[Job]:
        """Matching jobs with their failures, newest id first, at most `limit`; `before` goes on after that id."""
        ...

    async def count(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """How many jobs match, by the predicate of `delete` and `list`."""
        ...

    async def stats(self, *, now: datetime | None = None) -> Stats:
        """The aggregate of L6; it and `tally` are the only operations that may read all jobs (S8)."""
        ...

    async def tally(self) -> Tally:
        """What metrics show, for callers that keep it a while (S8, F15); reads no payload, and hinders no other call for long.

        It may be put together from parts: a job that changes meanwhile may be missing, or be there before and after.
        """
        ...

    async def pending_names(self, queues: Sequence[str] | None = None) -> list[str]:
        """The names of pending jobs, sorted, through an index; queues None means those that no face owns (E19)."""
        ...

    async def due(self, queues: Sequence[str], *, now: datetime | None = None) -> set[str]:
        """Which of the queues have a job that could be claimed now."""
        ...


class Documents(Protocol):
    """What is not a job: settings, key hashes, registries, plugin storage (S12)."""

    async def get_document(self, namespace: str, key: str, *, now: datetime | None = None) -> Document | None:
        """The document, unless it is absent or has expired."""
        ...

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
        """Write the value; `expect` is the revision that must be there (0: none), None writes in any case.

        Answers the document as stored, or None where another revision was there (compare-and-set).
        """
        ...

    async def delete_document(
        self, namespace: str, key: str, *, expect: int | None = None, now: datetime | None = None
    ) -> bool:
        """Delete the document; answers whether it was there, at the expected revision if one is given."""
        ...

    async def list_documents(
        self, namespace: str, *, prefix: str = "", after: str = "", limit: int = 1000, now: datetime | None = None
    ) -> list[Document]:
        """Documents whose keys begin with `prefix` and are greater than `after`, by key in code-point order."""
        ...


class Schema(Protocol):
    """What a store's tables are called to account for (S4)."""

    async def migrate(self) -> str:
        """Bring the tables up to date, from many processes at once if need be; answers what was done, in a sentence."""
        ...


class LeaseKeeper(Protocol):
    """Renews leases from a thread of its own, over a connection that no handler can block (E20)."""

    def renew(self, claims: Sequence[Claim], lease: float, now: datetime | None = None) -> set[Claim]:
        """As `JobStore.renew`, blocking."""
        ...

    def close(self) -> None:
        """Give the connection up."""
        ...


@runtime_checkable
class Store(JobStore, IntervalStore, ScheduleStore, Inspector, Documents, Schema, Protocol):
    """Everything that a store is. It opens at first use, and may be used from any thread and event loop."""

    def lease_keeper(self) -> LeaseKeeper:
        """A new keeper; the caller closes it."""
        ...

    async def close(self) -> None:
        """Give up connections and threads; safe twice, and a later use opens the store again."""
        ...


@runtime_checkable
class Wakeups(Protocol):
    """Optional: a store that can tell when jobs arrive. A wake-up is a hint; polling alone stays correct (E26)."""

    async def listen(self, wake: Callable[[], None]) -> Listener:
        """Call `wake`, from any thread, soon after jobs may have become claimable, until the listener is closed."""
        ...


class Listener(Protocol):
    """A subscription to wake-ups."""

    async def close(self) -> None:
        """End the subscription; safe twice."""
        ...


@runtime_checkable
class EnqueueOn(Protocol):
    """Optional: a store that can enqueue inside the caller's own database transaction (E10)."""

    async def enqueue_on(self, connection: Any, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """As `enqueue`, on an async connection or session; the jobs exist if and only if its transaction commits."""
        ...

    def enqueue_on_sync(self, connection: Any, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """The same on a blocking connection or session, without leaving the caller's thread."""
        ...
