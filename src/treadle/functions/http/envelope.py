"""The envelope of the API: `{"data", "meta"}` for success, `{"error"}` for failure, written as they go over the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_encode = msgspec.json.Encoder().encode


class Answer(Response):
    """An answer whose bytes are ready. HEAD gets the head alone, with the length that the body would have."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status
        self.body = body
        self.background = None
        self.raw_headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        if headers:
            self.raw_headers += [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else self.body})


def success(data: Any, status: int = 200) -> Answer:
    """The data in the envelope. It is anything that msgspec encodes; a `msgspec.Raw` in it is JSON already."""
    return Answer(status, b'{"data":%b,"meta":null}' % _encode(data))


def failure(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    """The error in the envelope: a `code` for programs, and one line for people."""
    if not message.isprintable():  # from outside, perhaps: an unpaired surrogate cannot be UTF-8, a line break splits the line
        message = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in message)
    return Answer(status, b'{"error":%b}' % _encode({"code": code, "message": message}), headers)
