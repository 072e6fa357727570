"""The jobs of functions: enqueue, get, list, retry, requeue, in the words of the wire (F9 to F11)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from msgspec import Raw

from treadle.client import wire
from treadle.core.errors import InvalidArgument, NotFound
from treadle.core.filter import JobFilter
from treadle.core.job import Job, Key, NewJob, State
from treadle.core.policies.limits import FUNCTIONS_QUEUE, checked_int, checked_key, seconds
from treadle.engine.enqueuer import Enqueuer
from treadle.engine.operations import DEAD, Operations
from treadle.functions.function import PREFIX, checked_function_name
from treadle.functions.profile import LIST_DEFAULT, LIST_MOST, MAX_ATTEMPTS, MAX_DELAY, REQUEUE_MOST

_STATUS: dict[State, wire.Status] = {
    State.PENDING: "pending",
    State.RUNNING: "running",
    State.DONE: "completed",
    State.DEAD: "dead",
}
_STATE = {status: state for state, status in _STATUS.items()}
_OWN = frozenset({FUNCTIONS_QUEUE})
_ID_LENGTH = 36  # of a UUID in text; nothing longer or shorter is asked of a store, which may refuse what is in it


class FunctionJobs:
    """What can be done to the jobs of the functions queue, and to no others in the store.

    `default_attempts` answers how many attempts a job gets that does not say so itself (F6).
    """

    def __init__(
        self, operations: Operations, enqueuer: Enqueuer, new_id: Callable[[], str], default_attempts: Callable[[], int]
    ) -> None:
        self._operations = operations
        self._enqueuer = enqueuer
        self._new_id = new_id
        self._default_attempts = default_attempts

    async def enqueue(
        self,
        name: str,
        payload_json: str = "null",
        delay_secs: float = 0,
        max_attempts: float | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[wire.Job, bool]:
        """Store a job of the function, which need not exist yet; answers it, and whether it is new (F9).

        It is not where a job of that function with that idempotency key is stored already. Raises `InvalidArgument`.
        """
        function = checked_function_name(name)
        delay = seconds(delay_secs, "delay_secs")
        if not 0 <= delay <= MAX_DELAY:
            raise InvalidArgument(f"delay_secs must be from 0 to {MAX_DELAY:,.0f} (30 days), not {delay_secs!r}")
        if max_attempts is None:
            max_attempts = self._default_attempts()
        key = None if idempotency_key is None else Key("idempotency", checked_key(idempotency_key, "the Idempotency-Key"))
        enqueued = await self._enqueuer.one(
            NewJob(
                id=self._new_id(),
                name=PREFIX + function,
                payload_json=payload_json,
                queue=FUNCTIONS_QUEUE,
                delay=delay,
                max_attempts=checked_int(_whole(max_attempts), "max_attempts", 1, MAX_ATTEMPTS),
                key=key,
            )
        )
        return self._shown(enqueued.job), enqueued.created

    async def get(self, id: str) -> wire.Job:
        """The job. Raises `NotFound` (F10)."""
        return self._shown(await self._own(id))

    def list(self, status: str | None = None, limit: int = LIST_DEFAULT) -> AsyncIterator[wire.Job]:
        """The jobs, or those of one status, newest first, read as they are taken. Raises `InvalidArgument` at once (F10)."""
        if status is not None and status not in _STATE:
            raise InvalidArgument(f"status must be one of {', '.join(wire.STATUSES)}; not {status[:80]!r}")
        states = None if status is None else frozenset({_STATE[status]})
        checked_int(limit, "limit", 1, LIST_MOST)
        found = self._operations.iterate(JobFilter(queues=_OWN, states=states), limit)
        return (self._shown(job) async for job in found)

    async def retry(self, id: str) -> wire.Job:
        """Put a dead job back to pending for one more attempt (F11). Raises `NotFound`, or `Conflict` if it is not dead."""
        await self._own(id)
        await self._operations.redrive(id)
        return await self.get(id)

    async def requeue(self) -> int:
        """Put dead jobs back to pending, oldest first, at most a thousand; answers how many (F11)."""
        done = await self._operations.redrive_all(JobFilter(queues=_OWN, states=DEAD), limit=REQUEUE_MOST)
        return len(done.revived)

    async def _own(self, id: str) -> Job:
        job = await self._operations.get(id) if len(id) == _ID_LENGTH and id.isascii() and id.isprintable() else None
        if job is None or job.queue != FUNCTIONS_QUEUE:
            raise NotFound(f"there is no job {id[:80]!r}")
        return job

    def _shown(self, job: Job) -> wire.Job:
        return wire.Job(
            id=job.id,
            function=job.name.removeprefix(PREFIX),
            status=_STATUS[job.state],
            attempts=job.attempts,
            max_attempts=job.max_attempts or self._default_attempts(),
            error=None if job.state is State.DONE else job.last_error,
            payload=Raw(job.payload_json.encode()),
            scheduled_at=job.run_at,
            started_at=job.started_at,
            completed_at=job.finished_at if job.state is State.DONE else None,
            response_status=int(job.note) if job.note is not None and job.note.isdigit() else None,
        )


def _whole(number: float) -> float:
    """JSON has one kind of number, so that 3.0 is 3; one that is not whole stays as it is, for the check to refuse it."""
    return int(number) if type(number) is float and number.is_integer() else number
