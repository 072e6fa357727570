"""Direct calls: a request passed on to a function, and its answer passed back, both as they flow (F3)."""

from __future__ import annotations

import asyncio
import logging
import os

import aiohttp
from starlette.requests import Request
from starlette.responses import Response
from yarl import URL

from treadle.functions.http.direct_path import DirectPath
from treadle.functions.http.failures import ApiFailure
from treadle.functions.http.forwarded import Forwarded
from treadle.functions.http.head import Head
from treadle.functions.http.passing import fault_of_head, refuse_unpassable, to_function
from treadle.functions.http.upload import Upload

_KEPT = 2.0  # seconds that a free connection is kept; servers close them after 5, and one closed in use fails its call
_HEAD = 65_536  # bytes that a line of an answer's head may have
_AUTOMATIC = (
    "User-Agent",
    "Accept",
    "Accept-Encoding",
    "Content-Type",
)  # which the function gets from the caller or not at all
_logger = logging.getLogger("treadle")


class Proxy:
    """Calls functions for the callers of the API. Redirects, cookies and compressed bodies pass through as they are."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Give up the connections to functions; safe twice."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def forward(
        self, request: Request, name: str, base_url: str, path: DirectPath, role: str, user_id: str | None, seconds: float
    ) -> Response:
        """Call the function, and answer once the head of its answer is there; the body follows as it comes.

        `path` is what stands behind `/invoke`, as it was sent; the query is taken from the request. `seconds` bounds the whole
        call: after that, an answer that has begun is cut. Raises `ApiFailure`: 400, 405 and 501 for requests that are not
        passed on, 408 for one whose body does not come, 502 where the function cannot be reached or its answer is malformed,
        504 where there is none in time.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        head = Head(request.method, b"", request.scope["http_version"], request.scope["headers"])
        refuse_unpassable(head.method, head.headers)
        query: bytes = request.scope["query_string"]
        url = URL(base_url.rstrip("/") + (path or "/") + ("?" + query.decode("latin-1") if query else ""), encoded=True)
        headers = to_function(head.headers, role, user_id)
        upload = Upload(request.receive, size=head.body_size)
        if head.body_size is not None and (head.body_size or any(name == b"content-length" for name, _ in head.headers)):
            headers.append(("content-length", str(head.body_size)))
        gone = asyncio.create_task(upload.gone())
        try:
            answer = await self._call(name, head.method, url, headers, upload, gone, deadline, seconds)
        except BaseException:
            gone.cancel()
            raise
        return Forwarded(name, answer, gone, deadline)

    async def _call(
        self,
        name: str,
        method: str,
        url: URL,
        headers: list[tuple[str, str]],
        upload: Upload,
        gone: asyncio.Task[None],
        deadline: float,
        seconds: float,
    ) -> aiohttp.ClientResponse:
        call = asyncio.create_task(self._head_of_answer(method, url, headers, upload))
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.wait({call, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise ApiFailure(400, "client_closed", "the request was broken off")
            answer = call.result()
        except TimeoutError:
            if upload.waiting:
                raise ApiFailure(408, "timeout", f"the body was not whole within {seconds:g} s") from None
            raise ApiFailure(504, "timeout", f"Function {name!r} has not answered within {seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if upload.broken_off:
                raise ApiFailure(400, "client_closed", "the request was broken off") from None
            _logger.info("Function %r could not be called directly at %s: %s", name, url.origin(), error)
            raise ApiFailure(502, "bad_gateway", f"Function {name!r} {_reason(error)}") from None
        finally:
            if not call.done():
                call.cancel()
                call.add_done_callback(_drop)
                await asyncio.wait({call})
        fault = fault_of_head(answer.status, answer.raw_headers)
        if fault is not None:
            answer.close()
            raise ApiFailure(502, "bad_gateway", f"Function {name!r} gave no usable answer: {fault}")
        return answer

    async def _head_of_answer(
        self, method: str, url: URL, headers: list[tuple[str, str]], upload: Upload
    ) -> aiohttp.ClientResponse:
        return await self._opened().request(
            method,
            url,
            headers=headers,
            data=None if upload.size == 0 else upload,
            chunked=True if upload.size is None else None,
            skip_auto_headers=_AUTOMATIC,
            allow_redirects=False,
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                auto_decompress=False,
                trust_env=False,
                max_line_size=_HEAD,
                max_field_size=_HEAD,
            )
        return self._session


def _drop(call: asyncio.Task[aiohttp.ClientResponse]) -> None:
    """Let go of an answer that came as its call was given up."""
    if not call.cancelled() and call.exception() is None:
        call.result().close()


def _reason(error: Exception) -> str:
    """What happened, without addresses: callers may be anybody."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "cannot be reached: its host is unknown"
        case aiohttp.ClientSSLError():
            return "cannot be reached: no TLS connection comes about"
        case aiohttp.ClientConnectorError():
            return f"cannot be reached: {os.strerror(error.errno).lower() if error.errno else 'no connection comes about'}"
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError() | ValueError():
            return "gave no usable answer: it is not HTTP"
        case _:
            return "closed the connection before it had answered"
