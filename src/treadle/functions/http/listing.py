"""Lists in the envelope: a short one goes out whole, a long one as it is read, since memory need not hold all its payloads."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle.core.errors import StoreError
from treadle.functions.http.envelope import Answer

PIECE = 1_048_576  # bytes that are gathered before they are sent
_HEAD, _TAIL = b'{"data":[', b'],"meta":null}'
_encode = msgspec.json.Encoder().encode
_logger = logging.getLogger("treadle")


async def listing(items: AsyncIterator[Any]) -> Response:
    """The items as `data`. What taking them raises before a piece is full is raised here, and so can be answered."""
    first, more = await _piece(items)
    return _LongList(first, items) if more else Answer(200, b"%b%b%b" % (_HEAD, first, _TAIL))


class _LongList(Response):
    """A list that is sent while it is read. Where the store fails in the middle it is cut, and so not taken for a whole one."""

    def __init__(self, first: bytes, items: AsyncIterator[Any]) -> None:
        self.status_code = 200
        self.background = None
        self._first = first
        self._items = items

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; HEAD gets the head alone."""
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        if scope["method"] != "HEAD":
            await send(_body(_HEAD + self._first))
            more = True
            while more:
                try:
                    piece, more = await _piece(self._items)
                except StoreError as error:
                    _logger.warning("a list broke off, because the store failed: %s", error)
                    return
                if piece:
                    await send(_body(b"," + piece))
            await send(_body(_TAIL, more=False))
        else:
            await send(_body(b"", more=False))


def _body(data: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _piece(items: AsyncIterator[Any]) -> tuple[bytes, bool]:
    """The next items with commas between them, and whether there may be more."""
    parts: list[bytes] = []
    size = 0
    async for item in items:
        parts.append(_encode(item))
        size += len(parts[-1])
        if size >= PIECE:
            return b",".join(parts), True
    return b",".join(parts), False
