"""The answer of a function on its way to the caller (F3)."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle.functions.http.passing import to_caller

_logger = logging.getLogger("treadle")


class Forwarded(Response):
    """Status, headers and body as the function gave them, each piece when the caller has taken the one before.

    One that breaks off, or is not whole at the deadline, is left incomplete, so that the server cuts the connection and the
    caller notices. When the caller goes, which ends `gone`, the call is ended.
    """

    def __init__(self, name: str, answer: aiohttp.ClientResponse, gone: asyncio.Task[None], deadline: float) -> None:
        self.status_code = answer.status
        self.raw_headers = to_caller(answer.raw_headers)
        self.background = None
        self._name = name
        self._answer = answer
        self._gone = gone
        self._limit = asyncio.timeout_at(deadline)
        gone.add_done_callback(self._end)

    def _end(self, gone: asyncio.Task[None]) -> None:
        """Wake up `__call__`. To close the answer under it would do too, but aiohttp keeps what that raises for ever."""
        try:
            self._limit.reschedule(0)
        except RuntimeError:  # it has not begun, or is over
            self._answer.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        whole = False
        content = self._answer.content
        try:
            async with self._limit:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                while not whole and not self._gone.done():
                    piece = await content.readany()
                    whole = content.at_eof()
                    await send({"type": "http.response.body", "body": piece, "more_body": not whole})
        except TimeoutError:
            if not self._gone.done():
                _logger.warning("Function %r was cut off: its answer to a direct call was not whole in time", self._name)
        except (aiohttp.ClientError, OSError) as error:
            _logger.warning("Function %r broke off its answer to a direct call: %s", self._name, error)
        finally:
            if whole:
                self._answer.release()
            else:
                self._answer.close()
            self._gone.cancel()
