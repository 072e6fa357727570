"""The API as one ASGI application: finds the operation, admits the caller, runs it, and answers whatever happens (F8, F14)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from treadle.functions.http.envelope import failure
from treadle.functions.http.failures import ApiFailure, answer_to
from treadle.functions.http.operation import Needs, Operation
from treadle.functions.identity import Identity

_SLASH = re.compile(rb"%2f", re.IGNORECASE)
IDENTITY = "treadle.identity"  # where in the scope the caller's identity is for the operation
Admit = Callable[[Request, Needs], Awaitable[Identity | None]]
Answered = Callable[[str, str, int, float], None]


def api(operations: Sequence[Operation], admit: Admit, answered: Answered) -> ASGIApp:
    """The application.

    `admit` answers who is calling, or raises. `answered` is told each answer: route, method, status, seconds.
    """
    paths: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation
    routes: list[BaseRoute] = [
        _Route(path, _Endpoint(path, paths[path], admit, answered)) for path in sorted(paths, key=_variable)
    ]
    return _Router(routes, redirect_slashes=False, default=_nowhere)


def _variable(path: str) -> list[bool]:
    """Which parts of a path are parameters: of two that match, the one goes first that is fixed where they begin to differ."""
    return [part.startswith("{") for part in path.split("/")]


class _Router(Router):
    """Finds the route by the path as it was sent: an encoded slash separates nothing, for us as for a proxy in front."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        raw: bytes = scope["raw_path"]
        if _SLASH.search(raw):
            scope = {**scope, "path": unquote(_SLASH.sub(b"%252F", raw).decode("ascii"))}
        await super().__call__(scope, receive, send)


class _Route(Route):
    """A path. Where several match, the first that has the method is taken; where none has it, the first says so itself."""

    def __init__(self, path: str, endpoint: _Endpoint) -> None:
        super().__init__(path, endpoint, methods=list(endpoint.methods))
        # A line break in a path is a character like others, and does not end it.
        self.path_regex = re.compile(self.path_regex.pattern.removesuffix("$") + r"\Z", re.DOTALL)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run it, whatever the method."""
        await self.app(scope, receive, send)


class _Endpoint:
    """All the operations of one path."""

    def __init__(self, path: str, operations: Mapping[str, Operation], admit: Admit, answered: Answered) -> None:
        self._path = path
        self._operations = {**operations}
        if "GET" in operations:
            self._operations.setdefault("HEAD", operations["GET"])
        self._allow = ", ".join(sorted(self._operations))
        self._admit = admit
        self._answered = answered

    @property
    def methods(self) -> Collection[str]:
        """The methods that it has."""
        return self._operations.keys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        started = clock()
        method: str = scope["method"]
        operation = self._operations.get(method)
        response: Response
        if operation is None:
            response = failure(
                405, "method_not_allowed", f"{method[:20]} is not allowed here, only {self._allow}", {"allow": self._allow}
            )
        else:
            response = await self._run(operation, Request(scope, receive, send))
        try:
            await response(scope, receive, send)
        finally:
            self._answered(self._path, method if operation else "other", response.status_code, clock() - started)

    async def _run(self, operation: Operation, request: Request) -> Response:
        try:
            request.scope[IDENTITY] = await self._admit(request, operation.needs)
            return await operation.run(request)
        except Exception as error:
            return answer_to(error)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    response = answer_to(ApiFailure(404, "not_found", f"there is nothing at {scope['path'][:200]!r}; /docs lists the routes"))
    await response(scope, receive, send)
