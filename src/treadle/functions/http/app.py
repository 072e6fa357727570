"""The API as one ASGI application: finds the operation, admits the caller, runs it, and answers whatever happens (F8, F14)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from treadle.functions.http.envelope import failure
from treadle.functions.http.failures import ApiFailure, answer_to
from treadle.functions.http.operation import Needs, Operation
from treadle.functions.identity import Identity

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
    routes: list[BaseRoute] = [Route(path, _Endpoint(path, found, admit, answered)) for path, found in paths.items()]
    return Router(routes, redirect_slashes=False, default=_nowhere)


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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        method: str = scope["method"]
        operation = self._operations.get(method)
        response: Response
        if operation is None:
            response = failure(
                405, "method_not_allowed", f"{method[:20]} is not allowed here; {self._allow} are", {"allow": self._allow}
            )
        else:
            response = await self._run(operation, Request(scope, receive, send))
        try:
            await response(scope, receive, send)
        finally:
            self._answered(self._path, method if operation else "other", response.status_code, time.perf_counter() - started)

    async def _run(self, operation: Operation, request: Request) -> Response:
        try:
            request.scope[IDENTITY] = await self._admit(request, operation.needs)
            return await operation.run(request)
        except Exception as error:
            return answer_to(error)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    response = answer_to(ApiFailure(404, "not_found", f"there is nothing at {scope['path'][:200]!r}; /docs lists the routes"))
    await response(scope, receive, send)
