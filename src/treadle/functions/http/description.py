"""The routes by which the API describes itself (F13)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from treadle.functions.http.docs import docs_page
from treadle.functions.http.openapi import openapi
from treadle.functions.http.operation import Operation

INTRODUCTION = """\
A function is a name, and a place that answers HTTP, in any language. A job is a call of it in the background: it is tried again
until the function has answered, and put among the dead letters if it never does.

Every route below `/v1` wants a key, in the header `apikey` or as `Authorization: Bearer`. Those of jobs, cron and dead letters
want the `service_role` key, which belongs on servers alone.

Success is `{"data": …, "meta": null}`, and failure `{"error": {"code": …, "message": …}}`: the code is for programs, and the
message is one line for people. A request that fails has changed nothing. Bodies are JSON in UTF-8, times are in UTC, and where
there is GET there is HEAD.
"""
GROUPS = {
    "Jobs": "Enqueue calls of functions, and see what became of them.",
    "Dead letters": "Jobs whose attempts are used up. They stay until they are put back or deleted.",
    "Cron": "Entries that enqueue a job whenever their time comes, in UTC.",
    "Direct calls": "Calls that wait for the function's answer, with any key, or as a signed-in user.",
    "Health": "For whoever watches the service. No key is wanted, unless for metrics.",
    "About": "This description.",
}


class DescriptionRoutes:
    """Describes the operations given, and itself."""

    def __init__(self, operations: Sequence[Operation], version: str) -> None:
        self.operations: Sequence[Operation] = (
            Operation(
                "GET",
                "/openapi.json",
                "openapi",
                "About",
                "This API as OpenAPI 3.1.",
                self.openapi,
                "nothing",
                success="The document.",
                enveloped=False,
            ),
            Operation(
                "GET",
                "/docs",
                "docs",
                "About",
                "This API as a page.",
                self.docs,
                "nothing",
                description="It loads nothing from elsewhere, so that it can be read offline.",
                success="The page.",
                content_type="text/html",
            ),
        )
        self._described = (*operations, *self.operations)
        self._version = version

    async def openapi(self, request: Request) -> Response:
        """`GET /openapi.json`."""
        return Response(self._json, media_type="application/json")

    async def docs(self, request: Request) -> Response:
        """`GET /docs`."""
        return self._page

    @cached_property
    def _document(self) -> dict[str, Any]:
        """Made when it is first asked for: most processes are never asked, and none should wait for it to start."""
        return openapi(self._described, self._version, INTRODUCTION, GROUPS)

    @cached_property
    def _json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self._document), indent=2)

    @cached_property
    def _page(self) -> Response:
        return docs_page(self._document)
