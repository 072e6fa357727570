"""Calling a function directly, with any standard method (F3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response

from treadle.core.signals import CallFailed
from treadle.functions.catalogue import Catalogue
from treadle.functions.http.app import IDENTITY
from treadle.functions.http.direct_path import direct_path
from treadle.functions.http.failures import ApiFailure
from treadle.functions.http.head import METHODS
from treadle.functions.http.jobs import FUNCTION_NAME
from treadle.functions.http.operation import Operation, Parameter
from treadle.functions.http.proxy import Proxy
from treadle.functions.identity import Identity
from treadle.functions.metrics import Metrics

PATH = Parameter("path", "path", {"type": "string"}, "The path at the function, and its query.", required=True)
REFUSALS = {
    403: "The path is below /jobs/, which is for job calls alone.",
    404: "There is no such function.",
    502: "The function cannot be reached.",
    503: "The function is inactive.",
    504: "The function has not answered in time.",
}
_logger = logging.getLogger("treadle")


class InvokeRoutes:
    """Passes a request on to its function, with who is calling."""

    def __init__(self, catalogue: Catalogue, proxy: Proxy, timeout: Callable[[], float], metrics: Metrics) -> None:
        self._catalogue = catalogue
        self._proxy = proxy
        self._timeout = timeout
        self._metrics = metrics

    @property
    def operations(self) -> Sequence[Operation]:
        """One for each method, on the function itself and on any path below."""
        return [
            Operation(
                method,
                path,
                f"invoke_{method.lower()}{'_path' if below else ''}",
                "Direct calls",
                f"Call a function with {method}.",
                self.invoke,
                "any key",
                parameters=(FUNCTION_NAME, *below),
                refusals=REFUSALS,
                content_type="*/*",
            )
            for path, below in (
                ("/v1/functions/{name}/invoke", ()),
                ("/v1/functions/{name}/invoke/{path:path}", (PATH,)),
            )
            for method in sorted(METHODS, key="HEAD".__eq__)  # the others first, on the page as well
        ]

    async def invoke(self, request: Request) -> Response:
        """Any method on `/v1/functions/NAME/invoke/…`."""
        identity: Identity = request.scope[IDENTITY]
        name = request.path_params["name"]
        path = direct_path(raw_path_below(request))
        deadline = asyncio.get_running_loop().time() + self._timeout()
        function = await self._catalogue.find(name)
        if function is None:
            raise ApiFailure(404, "function_not_found", f"Function {name[:80]!r} not found")
        if not function.active:
            raise ApiFailure(503, "function_inactive", f"Function {name!r} is inactive")
        try:
            base = await self._catalogue.address(function, self._timeout())
        except CallFailed as error:
            raise _unreached(name, error, identity) from None
        left = max(0.001, deadline - asyncio.get_running_loop().time())
        role = identity.user_role or identity.role
        try:
            response = await self._proxy.forward(request, name, base, path, role, identity.user_id, left)
        except ApiFailure:
            self._metrics.called(function.job_name, None, direct=True)
            raise
        self._metrics.called(function.job_name, response.status_code, direct=True)
        return response


def _unreached(name: str, error: CallFailed, identity: Identity) -> ApiFailure:
    """Why there is no process to call, with the last that it said: for servers and operators, since callers may be anybody."""
    _logger.warning("a direct call failed: %s", error)
    told = identity.role in ("service_role", "admin")
    text = str(error) if told else f"Function {name!r} cannot be reached; the service's log says why"
    return ApiFailure(502, "bad_gateway", text)


def raw_path_below(request: Request) -> str:
    """What follows `/invoke` in the path as it was sent."""
    raw: bytes = request.scope["raw_path"]
    below = raw.split(b"/", 5)[5:]
    return "/" + below[0].decode("latin-1") if below else "/"
