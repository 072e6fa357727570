"""The routes of cron entries (F12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Raw, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from treadle.client import wire
from treadle.core.cron.expression import MAX_LENGTH
from treadle.functions.crons import MAX_NAME, NAME_PATTERN, CronEntries
from treadle.functions.http.body import BodyReader
from treadle.functions.http.envelope import success
from treadle.functions.http.listing import listing
from treadle.functions.http.operation import Link, Operation, Parameter, described
from treadle.functions.http.parameters import FUNCTION_NAME
from treadle.functions.http.query import read_query

_PAYLOAD = {"recipients": ["anna@example.org"]}


class CronBody(msgspec.Struct, forbid_unknown_fields=True):
    """A cron entry to create."""

    name: Annotated[
        str,
        described(
            "The entry's name, by which it is deleted.",
            pattern=f"^{NAME_PATTERN}$",
            maxLength=MAX_NAME,
            examples=["monthly-report"],
        ),
    ]
    schedule: Annotated[
        str,
        described(
            "Minute, hour, day of month, month and day of week, or six fields with the second first, in UTC. Five are stored "
            "with `0` in front. Aliases such as `@daily` are refused.",
            format="cron",
            minLength=9,
            maxLength=MAX_LENGTH,
            examples=["0 6 1 * *"],
        ),
    ]
    function: Annotated[str, described("The function whose job each firing enqueues.", **FUNCTION_NAME.schema)]
    payload: (
        Annotated[
            Raw,
            described(
                "Any JSON: the payload of these jobs, kept as it is now, within the bounds of a job's.", examples=[_PAYLOAD]
            ),
        ]
        | UnsetType
    ) = UNSET


CRON_NAME = Parameter(
    "name",
    "path",
    {"type": "string", "pattern": f"^{NAME_PATTERN}$", "maxLength": MAX_NAME, "examples": ["monthly-report"]},
    "The entry's name.",
    required=True,
)


class CronRoutes:
    """Each parses, asks `CronEntries`, and answers."""

    def __init__(self, entries: CronEntries, bodies: BodyReader) -> None:
        self._entries = entries
        self._bodies = bodies

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations."""
        return (
            Operation(
                "POST",
                "/v1/functions/cron",
                "create_cron_job",
                "Cron",
                "Create a cron entry.",
                self.create,
                description="Each firing enqueues a job of the function, unless that of the last firing is unfinished. "
                "To change an entry, delete it and create it anew.",
                body=CronBody,
                body_required=True,
                answer=wire.CronJob,
                status=201,
                success="The entry, which is stored.",
                links=(Link("delete_cron_job", {"name": "name"}, "Delete it."),),
                refusals={409: "The name is in use."},
            ),
            Operation(
                "GET",
                "/v1/functions/cron",
                "list_cron_jobs",
                "Cron",
                "List cron entries, by name.",
                self.list,
                answer=list[wire.CronJob],
                success="The entries.",
            ),
            Operation(
                "DELETE",
                "/v1/functions/cron/{name}",
                "delete_cron_job",
                "Cron",
                "Delete a cron entry, by name.",
                self.delete,
                description="It fires no more; jobs that it has enqueued stay.",
                success="It is deleted.",
                parameters=(CRON_NAME,),
                refusals={404: "There is no such entry."},
            ),
        )

    async def list(self, request: Request) -> Response:
        """`GET /v1/functions/cron`."""
        read_query(request)
        return await listing(self._entries.list())

    async def create(self, request: Request) -> Response:
        """`POST /v1/functions/cron`."""
        read_query(request)
        body = await self._bodies.read(request, CronBody)
        entry = await self._entries.create(body.name, body.schedule, body.function, self._bodies.payload(body.payload))
        return success(entry, 201)

    async def delete(self, request: Request) -> Response:
        """`DELETE /v1/functions/cron/NAME`."""
        read_query(request)
        await self._entries.delete(request.path_params["name"])
        return success(None)
