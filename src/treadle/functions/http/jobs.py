"""The routes of jobs and dead letters (F9 to F11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from treadle.client import wire
from treadle.core.payload import JSON
from treadle.functions.http.body import BodyReader
from treadle.functions.http.envelope import success
from treadle.functions.http.listing import listing
from treadle.functions.http.operation import Link, Operation, described
from treadle.functions.http.parameters import (
    FUNCTION_NAME as FUNCTION_NAME,
    IDEMPOTENCY_KEY,
    JOB_ID,
    LIMIT,
    STATUS,
    read_idempotency_key,
)
from treadle.functions.http.query import read_limit, read_query
from treadle.functions.jobs import FunctionJobs
from treadle.functions.profile import MAX_ATTEMPTS, MAX_DELAY, REQUEUE_MOST

_PAYLOAD = {"month": "2026-10", "items": ["a", "b"]}


class EnqueueBody(msgspec.Struct, forbid_unknown_fields=True):
    """A job to enqueue. Every field may be left out, and so may the body."""

    payload: (
        Annotated[
            Raw,
            described(
                "Any JSON, the body of the call: 1 MiB at most, unless the service is set otherwise, and 100 levels deep.",
                examples=[_PAYLOAD],
            ),
        ]
        | UnsetType
    ) = UNSET
    delay_secs: Annotated[
        int | float,
        described(
            "Seconds until the first attempt; the job is `pending` until then.",
            minimum=0,
            maximum=int(MAX_DELAY),
            examples=[60],
        ),
    ] = 0
    max_attempts: (
        Annotated[
            int | float,
            described(
                "How many attempts it gets in all, the first one included; 3 if left out, unless the service is set otherwise.",
                type="integer",
                minimum=1,
                maximum=MAX_ATTEMPTS,
                examples=[3],
            ),
        ]
        | UnsetType
    ) = UNSET


class NoFields(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request that says everything in its path."""


_NEW: Mapping[str, JSON] = {
    "status": "pending",
    "attempts": 0,
    "started_at": None,
    "completed_at": None,
    "response_status": None,
}
_DEAD: Mapping[str, JSON] = {
    "status": "dead",
    "attempts": 3,
    "error": "Function 'send-report' not found",
    "started_at": "2026-11-01T06:00:10.500000Z",
    "completed_at": None,
    "response_status": None,
}
_TO_JOB = (
    Link("get_job", {"id": "id"}, "See what became of it."),
    Link("retry_job", {"id": "id"}, "Try again, once it is dead."),
)


class JobRoutes:
    """Each parses, asks `FunctionJobs`, and answers."""

    def __init__(self, jobs: FunctionJobs, bodies: BodyReader) -> None:
        self._jobs = jobs
        self._bodies = bodies

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations."""
        job: dict[str, Any] = {"group": "Jobs", "answer": wire.Job}
        dead: dict[str, Any] = {"group": "Dead letters"}
        return (
            Operation(
                "POST",
                "/v1/functions/{name}/jobs",
                "enqueue_job",
                summary="Enqueue a job of a function.",
                run=self.enqueue,
                description="The function need not exist before the job is due. It is called with the payload as the body, and "
                "whatever it answers completes the job; a call that fails is tried again until the attempts are used up.",
                parameters=(FUNCTION_NAME, IDEMPOTENCY_KEY),
                body=EnqueueBody,
                status=201,
                success="The job, which is stored.",
                also={200: "The job that holds the idempotency key, unchanged."},
                example=_NEW,
                links=_TO_JOB,
                **job,
            ),
            Operation(
                "GET",
                "/v1/functions/jobs",
                "list_jobs",
                "Jobs",
                "List jobs, newest first.",
                self.list,
                parameters=(STATUS, LIMIT),
                answer=list[wire.Job],
                success="The jobs.",
            ),
            Operation(
                "GET",
                "/v1/functions/jobs/dlq",
                "list_dead",
                summary="List dead jobs, newest first.",
                run=self.list_dead,
                parameters=(LIMIT,),
                answer=list[wire.Job],
                success="The dead jobs.",
                example=_DEAD,
                **dead,
            ),
            Operation(
                "POST",
                "/v1/functions/jobs/dlq/requeue",
                "requeue_dead",
                summary=f"Put dead jobs back to pending, oldest first, at most {REQUEUE_MOST:,}.",
                description="Each keeps its count and gets one more attempt. Fix what made them fail first.",
                run=self.requeue,
                answer=wire.Requeued,
                success="They are pending.",
                **dead,
            ),
            Operation(
                "GET",
                "/v1/functions/jobs/{id}",
                "get_job",
                summary="Read a job.",
                run=self.get,
                description="Completed jobs are kept for 14 days, unless the service is set otherwise.",
                parameters=(JOB_ID,),
                success="The job.",
                refusals={404: "There is no such job."},
                **job,
            ),
            Operation(
                "POST",
                "/v1/functions/jobs/{id}/retry",
                "retry_job",
                "Dead letters",
                "Put a dead job back to pending, for one more attempt.",
                self.retry,
                description="Its count is kept. Fix what made it fail first.",
                parameters=(JOB_ID,),
                answer=wire.Job,
                success="The job, which is pending.",
                example={**_DEAD, "status": "pending"},
                refusals={404: "There is no such job.", 409: "The job is not dead."},
            ),
        )

    async def list(self, request: Request) -> Response:
        """`GET /v1/functions/jobs`."""
        query = read_query(request, ("status", "limit"))
        return await listing(self._jobs.list(query.get("status"), read_limit(query.get("limit"))))

    async def list_dead(self, request: Request) -> Response:
        """`GET /v1/functions/jobs/dlq`."""
        query = read_query(request, ("limit",))
        return await listing(self._jobs.list("dead", read_limit(query.get("limit"))))

    async def requeue(self, request: Request) -> Response:
        """`POST /v1/functions/jobs/dlq/requeue`."""
        await self._nothing_more(request)
        return success(wire.Requeued(await self._jobs.requeue()))

    async def get(self, request: Request) -> Response:
        """`GET /v1/functions/jobs/ID`."""
        read_query(request)
        return success(await self._jobs.get(request.path_params["id"]))

    async def retry(self, request: Request) -> Response:
        """`POST /v1/functions/jobs/ID/retry`."""
        await self._nothing_more(request)
        return success(await self._jobs.retry(request.path_params["id"]))

    async def enqueue(self, request: Request) -> Response:
        """`POST /v1/functions/NAME/jobs`."""
        read_query(request)
        key = read_idempotency_key(request)
        body = await self._bodies.read(request, EnqueueBody)
        job, created = await self._jobs.enqueue(
            request.path_params["name"],
            self._bodies.payload(body.payload),
            body.delay_secs,
            None if body.max_attempts is UNSET else body.max_attempts,
            key,
        )
        return success(job, 201 if created else 200)

    async def _nothing_more(self, request: Request) -> None:
        """Refuse a query and a body: somebody meant something by them."""
        read_query(request)
        await self._bodies.read(request, NoFields)
