"""The errors that any route may answer with, for the API's description: each status with its code and what it means (F14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from treadle.functions.http.operation import Operation

ERROR = "#/components/schemas/Error"
_RESPONSE = "#/components/responses/"

ERROR_SCHEMA: Mapping[str, Any] = {
    "title": "Error",
    "description": "What every failure answers.",
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "description": "What is wrong.",
            "required": ["code", "message"],
            "additionalProperties": False,
            "properties": {
                "code": {
                    "type": "string",
                    "description": "A word for programs, which stays the same.",
                    "pattern": "^[a-z]+(_[a-z]+)*$",
                    "examples": ["not_found"],
                },
                "message": {
                    "type": "string",
                    "description": "One line for people, which names what is wrong and what to do.",
                    "minLength": 1,
                    "examples": ["there is no job 'x'"],
                },
            },
        }
    },
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A status of failure as any route may answer it."""

    name: str
    code: str
    message: str
    description: str
    headers: Mapping[str, str] = field(default_factory=dict)


FAILURES: Mapping[int, Failure] = {
    400: Failure(
        "Invalid",
        "invalid_request",
        "unknown field 'delay'; known are payload, delay_secs, max_attempts",
        "Something in the request is wrong, and nothing was done; the message names it.",
    ),
    401: Failure(
        "Unauthorized",
        "unauthorized",
        "a key is wanted, in the header apikey or as Authorization: Bearer",
        "There is no key, or one that is not accepted.",
        {"WWW-Authenticate": "How to give one."},
    ),
    403: Failure(
        "Forbidden",
        "forbidden",
        "this needs the service_role key; the caller is anon",
        "The key is known, but does not allow this.",
    ),
    404: Failure(
        "NotFound", "not_found", "there is nothing at '/v1/job'; /docs lists the routes", "There is nothing at this path."
    ),
    405: Failure(
        "MethodNotAllowed",
        "method_not_allowed",
        "PUT is not allowed here, only GET, HEAD",
        "The path does not have this method.",
        {"Allow": "The methods that are allowed."},
    ),
    408: Failure(
        "Timeout", "timeout", "the body was not whole within 30 s", "The request did not arrive in time; nothing was done."
    ),
    413: Failure(
        "TooLarge",
        "payload_too_large",
        "the payload is larger than the limit of 1,048,576 bytes",
        "The payload is larger than the service takes.",
    ),
    415: Failure(
        "UnsupportedMediaType",
        "unsupported_media_type",
        "the content-type must be application/json in UTF-8, not 'text/plain'",
        "The body is not declared as JSON in UTF-8, or is compressed.",
    ),
    431: Failure(
        "HeadTooLarge",
        "head_too_large",
        "the head of the request is larger than 32,768 bytes",
        "The path, the query and the headers are too large together.",
    ),
    500: Failure(
        "Internal",
        "internal",
        "the service failed to answer; its log says why",
        "The service failed in a way that nobody foresaw.",
    ),
    501: Failure(
        "NotImplemented",
        "not_implemented",
        "the one transfer-encoding that is read is chunked",
        "The request uses a part of HTTP that the service does not have.",
    ),
    503: Failure(
        "StoreUnavailable",
        "store_unavailable",
        "the store cannot be reached at the moment; try again",
        "The store does not answer, or cannot be used as it is.",
        {"Retry-After": "In how many seconds to try again, where that may help."},
    ),
    507: Failure("StoreFull", "store_full", "the store has no room; nothing was stored", "The store has no room."),
}
ALWAYS = (400, 405, 408, 431, 500, 501)  # before a route is found at all, or whatever the route


def shared_responses() -> dict[str, Any]:
    """The `components.responses` of the document."""
    return {
        one.name: {
            "description": one.description,
            "content": error_content(one.code, one.message),
            **({"headers": {name: _header(text) for name, text in one.headers.items()}} if one.headers else {}),
        }
        for one in FAILURES.values()
    }


def shared(status: int) -> dict[str, Any]:
    """A reference to the failure of that status."""
    return {"$ref": _RESPONSE + FAILURES[status].name}


def error_content(code: str, message: str) -> dict[str, Any]:
    """The body of a failure."""
    example = {"error": {"code": code, "message": message}}
    return {"application/json": {"schema": {"$ref": ERROR}, "example": example}}


def expected_failures(operation: Operation) -> Iterable[int]:
    """The shared failures that the operation may answer, beside those that are its own."""
    found = {*ALWAYS}
    if operation.needs != "nothing":
        found |= {401, 503}
    if operation.needs == "service_role":
        found |= {403}
    if operation.parameters and any(one.place == "path" for one in operation.parameters):
        found |= {404}
    if operation.needs == "service_role" and operation.method == "POST":  # one that takes no body looks whether there is one
        found |= {413, 415}
    if operation.needs == "service_role" and operation.method != "GET":
        found |= {507}
    return sorted(found - {*operation.refusals})


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}
