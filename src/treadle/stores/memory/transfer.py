"""Being an end of a move, in memory: the mark, what is kept beside jobs, and things put in as they were (S13)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from treadle.core.errors import Conflict
from treadle.core.job import Job
from treadle.core.transfer import Cargo, Counts, KeptDocument, KeptInterval, Mark, Stage
from treadle.stores.memory.documents import DocumentShelf
from treadle.stores.memory.ledger import Ledger
from treadle.stores.memory.schedules import ScheduleShelf
from treadle.stores.memory.wakeups import Wakers


class MemoryTransfer:
    """The part of the store that moves take part in; each step under the store's one lock."""

    _lock: threading.Lock
    _ledger: Ledger
    _documents: DocumentShelf
    _schedules: ScheduleShelf
    _wakers: Wakers
    _mark: Mark | None

    async def founded(self) -> bool:
        """Always: there are no tables."""
        return True

    async def get_mark(self) -> Mark | None:
        """The mark; see `Transfer.get_mark`."""
        with self._lock:
            return self._mark

    async def put_mark(self, mark: Mark | None, *, expect: Mark | None) -> bool:
        """Replace the mark; see `Transfer.put_mark`."""
        with self._lock:
            if self._mark != expect or (mark is not None and mark.stage is Stage.SEALED and self._ledger.tokens):
                return False
            self._mark = mark
        self._wakers.wake(self._ledger.lanes.arrivals)
        return True

    async def kept(self) -> Counts:
        """How much there is beside jobs; see `Transfer.kept`."""
        with self._lock:
            return Counts(intervals=len(self._ledger.intervals), schedules=len(self._schedules), documents=len(self._documents))

    async def kept_intervals(self, *, after: str = "", limit: int = 1000) -> list[KeptInterval]:
        """Intervals in order; see `Transfer.kept_intervals`."""
        with self._lock:
            return self._ledger.intervals.kept(after, limit)

    async def kept_documents(self, *, after: tuple[str, str] | None = None, limit: int = 1000) -> list[KeptDocument]:
        """Documents of all namespaces; see `Transfer.kept_documents`."""
        with self._lock:
            return self._documents.all(after, limit)

    async def taken(self, jobs: Sequence[Job]) -> dict[str, str]:
        """Who would be in the way; see `Transfer.taken`."""
        with self._lock:
            ledger = self._ledger
            holders = {job.id: job.id if job.id in ledger.jobs else ledger.holder(job) for job in jobs}
        return {job_id: holder for job_id, holder in holders.items() if holder is not None}

    async def restore(self, cargo: Cargo, *, expect: Mark, now: datetime | None = None) -> None:
        """Put everything in as it was; see `Transfer.restore`."""
        with self._lock:
            self._check(expect)
            at = datetime.now(UTC) if now is None else now
            for job in cargo.jobs:
                holder = self._ledger.restore(job, at)
                if holder is not None:
                    raise Conflict(f"job {job.id} cannot be stored here: job {holder} holds its key")
            for interval in cargo.intervals:
                self._ledger.intervals.restore(interval)
            for schedule in cargo.schedules:
                self._schedules.restore(schedule)
            for document in cargo.documents:
                self._documents.restore(document)

    async def remove(self, cargo: Cargo, *, expect: Mark) -> None:
        """Take everything out; see `Transfer.remove`."""
        with self._lock:
            self._check(expect)
            for job in cargo.jobs:
                here = self._ledger.jobs.get(job.id)
                if here is not None and here.id not in self._ledger.tokens:
                    self._ledger.remove(here)
            self._ledger.sweep()
            for interval in cargo.intervals:
                self._ledger.intervals.forget(interval.interval.schedule)
            for schedule in cargo.schedules:
                self._schedules.delete(schedule.name)
            for document in cargo.documents:
                self._documents.remove(document)

    def _check(self, expect: Mark) -> None:
        if self._mark != expect:
            raise Conflict("the move has changed under way: is `treadle move` run twice?")
