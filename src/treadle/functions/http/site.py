"""The site: all routes of the service put together, and who may call which (F8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from treadle.core.errors import InvalidArgument
from treadle.functions.catalogue import Catalogue
from treadle.functions.crons import CronEntries
from treadle.functions.http.app import api
from treadle.functions.http.body import BodyReader
from treadle.functions.http.crons import CronRoutes
from treadle.functions.http.description import DescriptionRoutes
from treadle.functions.http.failures import ApiFailure
from treadle.functions.http.health import HealthRoutes
from treadle.functions.http.invoke import InvokeRoutes
from treadle.functions.http.jobs import JobRoutes
from treadle.functions.http.operation import Needs, Operation
from treadle.functions.http.proxy import Proxy
from treadle.functions.identity import Identity
from treadle.functions.jobs import FunctionJobs
from treadle.functions.key_ring import KeyRing
from treadle.functions.metrics import Metrics
from treadle.functions.settings import ServiceSettings


class Site:
    """`app` is the ASGI application: the `whole` API, or health and metrics alone.

    `settings` answers those in force, `ready` whether requests are welcome.
    """

    def __init__(
        self,
        jobs: FunctionJobs,
        crons: CronEntries,
        catalogue: Catalogue,
        ring: KeyRing,
        metrics: Metrics,
        settings: Callable[[], ServiceSettings],
        look: Callable[[], Awaitable[object]],
        ready: Callable[[], bool],
        version: str,
        *,
        whole: bool,
    ) -> None:
        self._ring = ring
        self._metrics = metrics
        self._settings = settings
        self._proxy = Proxy()
        bodies = BodyReader(lambda: settings().max_payload)
        health = HealthRoutes(look, ready, self._scrape).operations
        operations: Sequence[Operation] = (
            *JobRoutes(jobs, bodies).operations,
            *CronRoutes(crons, bodies).operations,
            *InvokeRoutes(catalogue, self._proxy, lambda: settings().timeout, metrics).operations,
            *health,
        )
        described = DescriptionRoutes(operations, version)
        answered = [*operations, *described.operations] if whole else health
        self.app: ASGIApp = api(answered, self._admit, metrics.http_request)

    async def close(self) -> None:
        """Give up the connections to functions; safe twice."""
        await self._proxy.close()

    async def _admit(self, request: Request, needs: Needs) -> Identity | None:
        """Who is calling. Raises `Unauthorized`, or an `ApiFailure` for a caller who may not."""
        if needs == "nothing":
            return None
        identity = await self._ring.identify(_once(request, "apikey"), _once(request, "authorization"))
        if needs == "service_role" and identity.role != "service_role":
            raise ApiFailure(403, "forbidden", f"this needs the service_role key; the caller is {_shown(identity)}")
        return identity

    async def _scrape(self, request: Request) -> Response:
        """`GET /metrics`."""
        if self._settings().metrics == "keyed":
            identity = await self._admit(request, "any key")
            if identity is None or identity.role not in ("service_role", "admin"):
                raise ApiFailure(403, "forbidden", "the metrics need the service_role key or the admin key")
        content_type, page = await self._metrics.render()
        return Response(page, headers={"content-type": content_type})


def _shown(identity: Identity) -> str:
    return "a user" if identity.user_id is not None else identity.role


def _once(request: Request, name: str) -> str | None:
    """The header. Raises `InvalidArgument` where it is there twice: whose the request is must not depend on who reads it."""
    values = request.headers.getlist(name)
    if len(values) > 1:
        raise InvalidArgument(f"the header {name} is there {len(values)} times; give it once")
    return values[0].strip(" \t") if values else None
