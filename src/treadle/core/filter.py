"""The one predicate behind list, count, prune, its dry run, and redrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from treadle.core.job import FINISHED, Job, State
from treadle.core.policies.limits import owned_by_a_face


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are meant; what is None restricts nothing.

    `older_than` is an age in seconds, inclusive: counted from `finished_at` for done and dead jobs, from `created_at`
    for the others (L5). `keyed` asks for jobs with an idempotency key (True) or without one (False), `of_faces` for
    jobs in queues of the functions service and of plugins (True) or in all others (False).
    """

    ids: Sequence[str] | None = None
    states: frozenset[State] | None = None
    names: frozenset[str] | None = None
    queues: frozenset[str] | None = None
    older_than: float | None = None
    keyed: bool | None = None
    of_faces: bool | None = None

    def matches(self, job: Job, now: datetime) -> bool:
        """Whether the job is meant. Stores with a query language translate this, and the contract compares."""
        return (
            (self.ids is None or job.id in self.ids)
            and (self.states is None or job.state in self.states)
            and (self.names is None or job.name in self.names)
            and (self.queues is None or job.queue in self.queues)
            and (self.of_faces is None or self.of_faces == owned_by_a_face(job.queue))
            and (self.keyed is None or self.keyed == (job.idempotency_key is not None))
            and (self.older_than is None or (now - self._since(job)).total_seconds() >= self.older_than)
        )

    @staticmethod
    def _since(job: Job) -> datetime:
        if job.state in FINISHED and job.finished_at is not None:
            return job.finished_at
        return job.created_at


EVERYTHING = JobFilter()
