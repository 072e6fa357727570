"""Health, readiness, metrics, and the API's own description (F13, F15)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from treadle.core.errors import StoreError
from treadle.functions.http.envelope import success
from treadle.functions.http.failures import ApiFailure
from treadle.functions.http.operation import Operation, described

PATIENCE = 5.0  # seconds that the store gets to answer whether it is there
_logger = logging.getLogger("treadle")


class Health(msgspec.Struct):
    """How the service is."""

    status: Annotated[Literal["ok"], described("Always `ok`: a service that is not, answers an error, or not at all.")] = "ok"


class HealthRoutes:
    """`look` reads something small from the store; `ready` says whether this process takes requests at all."""

    def __init__(
        self,
        look: Callable[[], Awaitable[object]],
        ready: Callable[[], bool],
        metrics: Callable[[Request], Awaitable[Response]],
    ) -> None:
        self._look = look
        self._ready = ready
        self._metrics = metrics

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations."""
        return (
            Operation(
                "GET",
                "/healthz",
                "health",
                "Health",
                "Whether the service is alive.",
                self.alive,
                "nothing",
                description="It asks nothing of the store: for whoever restarts a process that hangs.",
                answer=Health,
                success="It is.",
            ),
            Operation(
                "GET",
                "/readyz",
                "readiness",
                "Health",
                "Whether the service takes requests, and its store answers.",
                self.ready,
                "nothing",
                description="For whoever sends requests to one of several services.",
                answer=Health,
                success="Both hold.",
                refusals={503: "It is starting or stopping, or its store does not answer."},
            ),
            Operation(
                "GET",
                "/metrics",
                "metrics",
                "Health",
                "Metrics for Prometheus.",
                self._metrics,
                "nothing",
                description="Open to everybody, unless the setting METRICS is `keyed`.",
                content_type="text/plain",
                success="The metrics, in Prometheus's text format.",
                refusals={
                    401: "METRICS is `keyed`, and there is no key, or none that is accepted.",
                    403: "METRICS is `keyed`, and the key is neither `service_role` nor `admin`.",
                    503: "METRICS is `keyed`, and the store cannot be asked for the key.",
                },
            ),
        )

    async def alive(self, request: Request) -> Response:
        """`GET /healthz`."""
        return success(Health())

    async def ready(self, request: Request) -> Response:
        """`GET /readyz`."""
        if not self._ready():
            raise ApiFailure(503, "stopping", "the service is stopping, or has not started yet")
        try:
            async with asyncio.timeout(PATIENCE):
                await self._look()
        except TimeoutError:
            raise ApiFailure(503, "store_unavailable", f"the store has not answered within {PATIENCE:g} s") from None
        except StoreError as error:  # it may name hosts and files, and whoever asks here may be anybody
            _logger.warning("this service is not ready, because its store failed: %s", error)
            raise ApiFailure(503, "store_unavailable", "the store does not answer; the service's log says why") from None
        return success(Health())
