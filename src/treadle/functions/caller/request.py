"""The head of a request, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.errors import InvalidArgument
from treadle.functions.caller.place import Place

_FIXED = 6  # lines beside the headers that are given: request line, host, user-agent, accept, content-length, the empty one


def request_head(place: Place, method: str, path: str, headers: Sequence[tuple[str, str]], length: int) -> bytes:
    """Request line and headers. Raises `InvalidArgument` where a part would break out of its line."""
    given = "".join([f"{name}: {value}\r\n" for name, value in headers])
    target = f"{method} {place.base}{path}"
    head = f"{target}{place.lines}{given}content-length: {length}\r\n\r\n"
    lines = _FIXED + len(headers)
    if (
        not head.isascii()
        or head.count("\n") != lines
        or head.count("\r") != lines
        or head.count("\r\n") != lines
        or target.count(" ") != 1
        or "\0" in head
    ):
        raise InvalidArgument(
            "a call's method, path and headers must be ASCII without line breaks, and the path without spaces"
        )
    return head.encode("ascii")
