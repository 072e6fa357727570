"""Answers of the service: `{"data": …}`, `{"error": {"code", "message"}}`, or something that it never said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from treadle.client.errors import ApiError, UnexpectedAnswer
from treadle.client.reading import Misfit

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

UNKNOWN_CODE = "unknown"  # of an error that is not in the service's own form: a proxy's, say


def data(read: Callable[[Any], T]) -> Callable[[httpx2.Response], T]:
    """A reader of answers whose data `read` reads. It raises `ApiError` and `UnexpectedAnswer`."""

    def read_answer(response: httpx2.Response) -> T:
        if response.status_code >= 400:
            raise api_error(response)
        if not 200 <= response.status_code < 300:
            raise _redirected(response)
        try:
            envelope = _parsed(response)
            if not isinstance(envelope, dict) or "data" not in envelope:
                raise Misfit("JSON without `data`")
            return read(envelope["data"])
        except Misfit as misfit:
            raise UnexpectedAnswer(f"{_said(response)} and {misfit}; is this a functions service of treadle?") from None

    return read_answer


def as_it_is(response: httpx2.Response) -> httpx2.Response:
    """The answer of a function that was called directly, whatever it is; the key goes no further."""
    del response.request.headers["apikey"]
    if response.next_request is not None:
        response.next_request.headers.pop("apikey", None)
    return response


def api_error(response: httpx2.Response) -> ApiError:
    """The error of an answer with an error's status."""
    waits = retry_after(response)
    try:
        match _parsed(response):
            case {"error": {"code": str(code), "message": str(message)}}:
                return ApiError(response.status_code, code, message, waits)
    except Misfit:
        pass
    return ApiError(
        response.status_code, UNKNOWN_CODE, f"{_said(response)}, but not as a functions service of treadle does", waits
    )


def retry_after(response: httpx2.Response) -> float | None:
    """The seconds that the answer asks to wait. A date is counted from the answer's own, whatever the clock here says."""
    text = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(response.headers.get("date", ""))
    except (ValueError, TypeError):  # no date, or one without a zone
        return None
    return max(wait.total_seconds(), 0.0)


def _parsed(response: httpx2.Response) -> Any:
    try:
        return json.loads(response.content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        kind = response.headers.get("content-type", "").partition(";")[0][:60] or "no content-type"
        raise Misfit(f"{len(response.content):,} bytes that are not JSON ({kind})") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _redirected(response: httpx2.Response) -> UnexpectedAnswer:
    place = response.headers.get("location", "nowhere")[:200]
    return UnexpectedAnswer(f"{_said(response)}, which leads to {place}; it is not followed, so correct the client's URL")


def _said(response: httpx2.Response) -> str:
    request = response.request
    return f"{request.url} answered {request.method} with {response.status_code} {response.reason_phrase}".rstrip()
