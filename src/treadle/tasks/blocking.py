"""The blocking twins of `Tasks`, for code that has no event loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack

from treadle.core.job import Enqueued, Job, State
from treadle.core.store import Redriven, Stats
from treadle.engine.operations import Pruned
from treadle.engine.portal import Portal
from treadle.tasks.blocking_schedules import SyncSchedules
from treadle.tasks.options import EnqueueOptions, NewJob
from treadle.tasks.profile import PRUNE_AFTER

if TYPE_CHECKING:
    from treadle.tasks.app import Tasks


class SyncTasks:
    """Each method is that of `Tasks`, and blocks. The work is done in an event loop in a thread of its own.

    Not for use within an async function: it would hold up that function's loop.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._portal = Portal()

    @property
    def schedules(self) -> SyncSchedules:
        """The stored cron schedules: list, get, pause, resume, run_now, delete (T14)."""
        return SyncSchedules(self._tasks, self._portal)

    def enqueue(self, name: str, payload: object = None, **options: Unpack[EnqueueOptions]) -> Enqueued:
        """Store a job (E4); with `connection`, within the transaction of that blocking connection (E10)."""
        connection = options.pop("connection", None)
        if connection is not None:
            return self.enqueue_many([{"name": name, "payload": payload, **options}], connection=connection)[0]
        return self._portal.call(self._tasks.enqueue(name, payload, **options))

    def enqueue_many(self, jobs: Iterable[Mapping[str, Any] | NewJob], *, connection: Any = None) -> list[Enqueued]:
        """Store many jobs at once, all or none (E9)."""
        if connection is not None:
            # A connection belongs to its thread and transaction: this is done right here, without the portal.
            return self._tasks._enqueue_on_sync(jobs, connection)  # noqa: SLF001  the other half of one class
        return self._portal.call(self._tasks.enqueue_many(jobs))

    def get(self, id: str) -> Job | None:
        """The job with its failures, or None."""
        return self._portal.call(self._tasks.get(id))

    def list(
        self,
        states: Iterable[State | str] | None = None,
        name: str | None = None,
        queue: str | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """The jobs that match, newest first."""
        return self._portal.call(self._tasks.list(states, name, queue, limit))

    def retry(self, id: str | None = None, *, all_dead: bool = False, name: str | None = None) -> Redriven:
        """Send dead letters round again (E17)."""
        return self._portal.call(self._tasks.retry(id, all_dead=all_dead, name=name))

    def run_now(self, id: str) -> None:
        """Make a pending job due now."""
        self._portal.call(self._tasks.run_now(id))

    def delete(self, id: str) -> None:
        """Delete a job that is not running."""
        self._portal.call(self._tasks.delete(id))

    def prune(
        self,
        older_than: float | timedelta = PRUNE_AFTER,
        *,
        states: Iterable[State | str] = (State.DONE, State.DEAD),
        name: str | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Delete jobs that are older (L5)."""
        return self._portal.call(self._tasks.prune(older_than, states=states, name=name, dry_run=dry_run))

    def stats(self) -> Stats:
        """Counts by state (L6)."""
        return self._portal.call(self._tasks.stats())

    def pending_names(self) -> Sequence[str]:
        """The names of jobs that wait without a handler here (E19)."""
        return self._portal.call(self._tasks.pending_names())

    def run_once(self) -> int:
        """Run what is due now, each job once (E25)."""
        return self._portal.call(self._tasks.run_once(), waits_for_jobs=True)

    def drain(self) -> int:
        """Run until nothing is due (E25)."""
        return self._portal.call(self._tasks.drain(), waits_for_jobs=True)

    def start(self) -> None:
        """Run jobs in the background, in the thread of the blocking twins (E25)."""
        self._portal.call(self._tasks.start())

    def stop(self, grace: float | timedelta | None = None) -> None:
        """Stop what `start` began (E24)."""
        self._portal.call(self._tasks.stop(grace))

    def close(self) -> None:
        """Stop, and give up the store's connections and the thread."""
        self._portal.call(self._tasks.close())
        self._portal.close()
