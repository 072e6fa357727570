"""The SQLite store: every operation of the contract, each a function over a session, run by the right thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from treadle.core.errors import InvalidArgument
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
    Reclaim,
    Redriven,
    Stats,
    Tally,
)
from treadle.stores.sqlite import changing, claiming, documents, finding, finishing, inspecting, intervals as keeping, schedules
from treadle.stores.sqlite.connection import Connection
from treadle.stores.sqlite.end_of_move import EndOfMove
from treadle.stores.sqlite.enqueue_on import CallersTransaction
from treadle.stores.sqlite.enqueueing import answers, store_jobs
from treadle.stores.sqlite.fencing import guarded
from treadle.stores.sqlite.leases import Keeper
from treadle.stores.sqlite.moments import present
from treadle.stores.sqlite.opening import MEMORY, Options, Synchronous
from treadle.stores.sqlite.rows import jobs_of
from treadle.stores.sqlite.session import Session
from treadle.stores.sqlite.steps import in_steps
from treadle.stores.sqlite.wakeups import Subscription

DEAD_ONLY, PENDING_ONLY = frozenset({State.DEAD}), frozenset({State.PENDING})
NOT_RUNNING = frozenset(State) - {State.RUNNING}


class SQLiteStore(CallersTransaction, EndOfMove):
    """Jobs in one SQLite file, for up to about eight processes; opens, and migrates, at first use (S4, S5).

    `path` is a file, whose folder is created, or `:memory:`. `synchronous` FULL makes each commit safe against a power
    cut, NORMAL only against a crash of the process. `busy_timeout` is how many seconds to wait for another program's
    lock before `StoreUnavailable`. Raises `InvalidArgument` for other values.
    """

    def __init__(
        self, path: str | os.PathLike[str] = "data/tasks.db", *, synchronous: Synchronous = "FULL", busy_timeout: float = 30.0
    ) -> None:
        text = os.fspath(path)
        if not text or "\0" in text:
            raise InvalidArgument(f"the path of a SQLite store must name a file or be {MEMORY}, not {text!r}")
        if synchronous not in ("FULL", "NORMAL"):
            raise InvalidArgument(f"synchronous must be FULL or NORMAL, not {synchronous!r}")
        if not 0 < busy_timeout <= 3600:
            raise InvalidArgument(f"busy_timeout must be more than 0 and at most 3,600 seconds, not {busy_timeout!r}")
        # Resolved now, so that a later chdir does not matter, and links to one file share its lock.
        self._options = Options(text if text == MEMORY else str(Path(text).resolve()), synchronous, float(busy_timeout))
        self._connection = Connection(self._options)
        self._busy = False  # whether the last claim left more behind that is ready

    def __repr__(self) -> str:
        return f"SQLiteStore({self._options.path!r})"

    # -- what moves jobs

    async def enqueue(self, jobs: Sequence[NewJob], *, now: datetime | None = None) -> list[Enqueued]:
        """Store the jobs in one transaction, answering each in order (E9)."""
        if not jobs:
            return []
        return answers(jobs, await self._connection.write(lambda session: store_jobs(session, jobs, present(now))))

    async def claim(
        self, token: str, demands: Sequence[Demand], *, worker: str, lease: float, now: datetime | None = None
    ) -> Claimed:
        """Take due jobs (E3, E28). Where none is due, nothing is locked or written."""
        terms = claiming.Terms(token, demands, worker, lease)
        # Under load the look would only repeat what the claim does; it is for those that poll.
        look = None if self._busy else partial(_look, terms=terms, now=now)
        taken = await self._connection.write(lambda session: claiming.take(session, terms, present(now)), look)
        self._busy = taken.next_in == 0.0
        return Claimed(jobs_of(taken.rows), taken.next_in)

    async def held(self, tokens: Sequence[str]) -> list[tuple[Claim, Job]]:
        """The running jobs that these tokens hold (E21)."""
        return await self._connection.read(lambda session: inspecting.held(session, tokens))

    async def renew(self, claims: Sequence[Claim], lease: float, *, now: datetime | None = None) -> set[Claim]:
        """Lease the jobs for `lease` seconds from now; answers the claims that still held (E20)."""
        if not claims:
            return set()
        return await self._connection.write(lambda session: finishing.renew(session, claims, lease, present(now)))

    async def finish(self, endings: Sequence[Ending], *, now: datetime | None = None) -> set[Claim]:
        """Apply the outcomes whose claims still hold, and answer those claims (E22)."""
        if not endings:
            return set()
        return await self._connection.write(lambda session: finishing.finish(session, endings, present(now)))

    async def expired(self, limit: int, *, now: datetime | None = None) -> list[Expired]:
        """Running jobs whose lease is past, longest past first (E21)."""
        return await self._connection.read(lambda session: inspecting.expired(session, limit, present(now)))

    async def reclaim(self, reclaims: Sequence[Reclaim], *, now: datetime | None = None) -> set[Claim]:
        """Apply outcomes to expired jobs whose lease is unchanged and past (E21)."""
        if not reclaims:
            return set()
        return await self._connection.write(lambda session: finishing.reclaim(session, reclaims, present(now)))

    async def redrive(
        self, which: JobFilter, policy: RedrivePolicy, *, limit: int | None = None, now: datetime | None = None
    ) -> Redriven:
        """Send dead jobs that match round again, oldest id first (E17)."""
        done = await in_steps(
            self._connection,
            finding.narrowed(which, DEAD_ONLY),
            partial(changing.redrive, policy=policy),
            lambda step: len(step.revived) + len(step.dropped),
            limit=limit,
            now=now,
        )
        return Redriven([one for step in done for one in step.revived], [one for step in done for one in step.dropped])

    async def run_now(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """Make pending jobs that match due now; answers how many there were (E2)."""
        pending = finding.narrowed(which, PENDING_ONLY)
        return sum(await in_steps(self._connection, pending, changing.run_now, int, limit=None, now=now))

    async def delete(self, which: JobFilter, *, limit: int | None = None, now: datetime | None = None) -> int:
        """Delete jobs that match, never running ones, oldest id first; answers how many (E2, E29)."""
        deletable = finding.narrowed(which, NOT_RUNNING)
        return sum(await in_steps(self._connection, deletable, changing.delete, int, limit=limit, now=now))

    # -- what keeps intervals going

    async def ensure(self, intervals: Sequence[tuple[Interval, str]], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Remember each interval, and put its copy back where none is unfinished (T1 to T4)."""
        if not intervals:
            return []
        return await self._connection.write(
            guarded(lambda session: keeping.ensure(session, intervals, present(now))),
            peek=guarded(lambda session: keeping.settled(session, intervals)),
        )

    async def intervals(self, schedules: Sequence[str]) -> list[Interval]:
        """The remembered intervals of these schedule names."""
        return await self._connection.read(lambda session: keeping.remembered(session, schedules))

    # -- cron schedules

    async def put_schedule(self, schedule: Schedule, *, expect: int | None = None) -> Schedule | None:
        """Store the schedule if the revision `expect` is there; None where another one was (T9)."""
        return await self._connection.write(guarded(lambda session: schedules.put(session, schedule, expect)))

    async def get_schedule(self, name: str) -> Schedule | None:
        """The schedule of that name."""
        return await self._connection.read(lambda session: schedules.get(session, name))

    async def list_schedules(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> list[Schedule]:
        """Schedules by name (T14)."""
        return await self._connection.read(lambda session: schedules.listed(session, prefix, after, limit))

    async def delete_schedule(self, name: str) -> bool:
        """Delete the schedule; its jobs stay (T14)."""
        return await self._connection.write(guarded(lambda session: schedules.delete(session, name)))

    async def due_schedules(self, limit: int, *, now: datetime | None = None) -> DueSchedules:
        """What is due and not paused, earliest first (T12)."""
        return await self._connection.read(lambda session: schedules.due(session, limit, present(now)))

    async def fire(self, firings: Sequence[Firing], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Advance each schedule and enqueue its job in one transaction (T11, T12)."""
        if not firings:
            return []
        return await self._connection.write(guarded(lambda session: schedules.fire(session, firings, present(now))))

    # -- what reads

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The stored jobs of these ids with their failures, in the order of the ids."""
        return await self._connection.read(lambda session: inspecting.get(session, ids))

    async def find(self, which: JobFilter, *, limit: int, before: str | None = None, now: datetime | None = None) -> list[Job]:
        """Matching jobs with their failures, newest id first (S8)."""
        return await self._connection.read(lambda session: finding.find(session, which, limit, before, present(now)))

    async def count(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """How many jobs match."""
        return await self._connection.read(lambda session: finding.count(session, which, present(now)))

    async def stats(self, *, now: datetime | None = None) -> Stats:
        """The aggregate of L6: through an index, reading no payload (S8)."""
        return await self._connection.read(inspecting.stats)

    async def tally(self) -> Tally:
        """Jobs by queue, name and state: through indexes, of one moment, reading no payload (S8)."""
        return await self._connection.read(inspecting.tally)

    async def pending_names(self, queues: Sequence[str] | None = None) -> list[str]:
        """The names of pending jobs, sorted (E19)."""
        return await self._connection.read(lambda session: inspecting.pending_names(session, queues))

    async def due(self, queues: Sequence[str], *, now: datetime | None = None) -> set[str]:
        """Which of the queues have a job that could be claimed now."""
        return await self._connection.read(lambda session: inspecting.due(session, queues, present(now)))

    # -- documents

    async def get_document(self, namespace: str, key: str, *, now: datetime | None = None) -> Document | None:
        """The document, unless it is absent or has expired (S12)."""
        return await self._connection.read(lambda session: documents.get(session, namespace, key, present(now)))

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
        """Write the value if the revision `expect` is there; None where another one was (S12)."""
        return await self._connection.write(
            guarded(lambda session: documents.put(session, namespace, key, value, expect, expires_in, present(now)))
        )

    async def delete_document(
        self, namespace: str, key: str, *, expect: int | None = None, now: datetime | None = None
    ) -> bool:
        """Delete the document; answers whether it was there, at the expected revision if one is given (S12)."""
        return await self._connection.write(
            guarded(lambda session: documents.delete(session, namespace, key, expect, present(now)))
        )

    async def list_documents(
        self, namespace: str, *, prefix: str = "", after: str = "", limit: int = 1000, now: datetime | None = None
    ) -> list[Document]:
        """Documents whose keys begin with `prefix` and are greater than `after`, by key in code-point order (S12)."""
        return await self._connection.read(
            lambda session: documents.listed(session, namespace, prefix, after, limit, present(now))
        )

    # -- the rest of a store

    async def migrate(self) -> str:
        """Bring the tables up to date, which opening does; answers what was done, in a sentence (S4)."""
        return await self._connection.open()

    def lease_keeper(self) -> Keeper:
        """A new keeper; the caller closes it (E20)."""
        return Keeper(self._connection)

    async def listen(self, wake: Callable[[], None]) -> Subscription:
        """Call `wake` soon after jobs may have become claimable, in this process or another (E26)."""
        subscription = Subscription(self._connection.listeners, wake)
        try:
            await self._connection.open()
        except BaseException:
            await subscription.close()
            raise
        return subscription

    async def close(self) -> None:
        """Give up connections and threads; safe twice, and a later use opens the store again."""
        await self._connection.close()


def _look(session: Session, terms: claiming.Terms, now: datetime | None) -> claiming.Taken | None:
    return claiming.look(session, terms, present(now))
