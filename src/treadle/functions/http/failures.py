"""What an exception becomes in the API: a status, a code and one line (F8, F14)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from treadle.core.errors import Conflict, InvalidArgument, NotFound, StoreError, StoreFull, StoreUnavailable
from treadle.functions.http.envelope import Answer, failure
from treadle.functions.identity import Unauthorized

_logger = logging.getLogger("treadle")


class ApiFailure(Exception):
    """A request is answered with an error: its status, a code for programs, and one line for people."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers


def answer_to(error: Exception) -> Answer:
    """The answer to a request that ended in this error. What nobody foresaw is logged here, and not told to the caller."""
    match error:
        case ApiFailure():
            return failure(error.status, error.code, error.message, error.headers)
        case Unauthorized():
            return failure(401, error.code, str(error), {"www-authenticate": "Bearer"})
        case InvalidArgument():
            return failure(400, "invalid_request", str(error))
        case NotFound():
            return failure(404, "not_found", str(error))
        case Conflict():
            return failure(409, "conflict", str(error))
        case StoreError():
            return _of_the_store(error)
        case HTTPException():
            return _of_a_route(error)
        case ClientDisconnect():
            return failure(400, "client_closed", "the request was broken off")  # which nobody will read
        case _:
            _logger.error("a request failed for an unforeseen reason", exc_info=error)
            return failure(500, "internal", "the service failed to answer; its log says why")


def _of_the_store(error: StoreError) -> Answer:
    """Its message may name hosts and files, and callers of functions may be anybody: only its kind is told."""
    _logger.warning("a request failed, because the store did: %s", error)
    match error:
        case StoreUnavailable():
            return failure(503, error.code, "the store cannot be reached at the moment; try again", {"retry-after": "1"})
        case StoreFull():
            return failure(507, error.code, "the store has no room; nothing was stored")
        case _:  # tables missing, too new, or moved: until somebody sees to it
            return failure(503, error.code, "the store cannot be used as it is; the service's log says why")


def _of_a_route(error: HTTPException) -> Answer:
    status, message = error.status_code, str(error.detail)
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "error"
    if message == phrase:
        message = {404: "there is no such route", 405: "this method is not allowed here"}.get(status, message.lower())
    return failure(status, phrase.lower().replace(" ", "_").replace("-", "_"), message, error.headers)
