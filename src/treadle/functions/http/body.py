"""Reading the JSON body of a request, within bounds: size, time, and what its fields may be (F9, F14)."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar, get_args

import msgspec
from msgspec import UNSET, Raw, UnsetType
from starlette.requests import Request

from treadle.core.errors import InvalidArgument
from treadle.core.payload import JSON, MAX_PAYLOAD, encode
from treadle.functions.http.complaint import complaint, unknown_field
from treadle.functions.http.failures import ApiFailure
from treadle.functions.http.strict_json import NotJson, strict_json

SECONDS = 30.0  # that a body may take to arrive
TYPES = ("application/json", "application/x-www-form-urlencoded")  # the second is what curl and urllib say unasked
ESCAPED = 3  # how many times as long a payload may be in ASCII, with its other characters escaped, as Python writes it unasked
BESIDES = 65_536  # bytes that a body may have beside its payload: the other fields, white space

_written = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
Body = TypeVar("Body", bound=msgspec.Struct)


class BodyReader:
    """Reads the bodies of one service. `limit` answers how many bytes of compact JSON a payload may have."""

    def __init__(self, limit: Callable[[], int] = lambda: MAX_PAYLOAD, seconds: float = SECONDS) -> None:
        self._limit = limit
        self._seconds = seconds

    async def read(self, request: Request, type: type[Body]) -> Body:
        """The body as this type; see `read_json`."""
        limit = self._limit()
        return await read_json(request, type, limit=largest_body(limit), payload_limit=limit, seconds=self._seconds)

    def payload(self, raw: Raw | UnsetType) -> str:
        """The JSON text of a payload that `read` gave; `null` where there was none (F9)."""
        return "null" if raw is UNSET else bytes(raw).decode()


def largest_body(payload_limit: int) -> int:
    """How many bytes a body may have whose payload may have so many."""
    return ESCAPED * payload_limit + BESIDES


async def read_json(
    request: Request, type: type[Body], *, limit: int, payload_limit: int | None = None, seconds: float = SECONDS
) -> Body:
    """The body as `type`, a msgspec Struct that forbids unknown fields; its fields of type `Raw` hold checked, compact JSON.

    Nothing at all stands for `{}`. Raises `ApiFailure`: 400 for what is not such JSON, 408 for a body that takes longer than
    `seconds`, 413 for one over `limit` bytes or a `Raw` over `payload_limit`, 415 for another type of content (F14).
    """
    if request.headers.get("content-length") != "0":
        _check_type(request)
    body = await _receive(request, limit, seconds)
    return _convert(body, type, limit if payload_limit is None else payload_limit)


def _check_type(request: Request) -> None:
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ApiFailure(415, "unsupported_media_type", "the body must not be compressed: send it without content-encoding")
    for value in request.headers.getlist("content-type"):
        media, *parameters = (part.strip().lower() for part in value.split(";"))
        charsets = [text.removeprefix("charset=").strip('"') for text in parameters if text.startswith("charset=")]
        if media not in TYPES or any(charset not in ("utf-8", "utf8") for charset in charsets):
            raise ApiFailure(
                415, "unsupported_media_type", f"the content-type must be application/json in UTF-8, not {value[:80]!r}"
            )


async def _receive(request: Request, limit: int, seconds: float) -> bytes:
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal() or len(announced) > 19 or int(announced) > limit:
        raise _too_large("the body", limit)
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ApiFailure(400, "client_closed", "the request was broken off")
                piece: bytes = message.get("body", b"")
                size += len(piece)
                if size > limit:
                    raise _too_large("the body", limit)
                pieces.append(piece)
                more = message.get("more_body", False)
    except TimeoutError:
        raise ApiFailure(408, "timeout", f"the body was not whole within {seconds:g} s") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _too_large(what: str, limit: int) -> ApiFailure:
    return ApiFailure(413, "payload_too_large", f"{what} is larger than the limit of {limit:,} bytes")


def _invalid(message: str) -> ApiFailure:
    return ApiFailure(400, "invalid_request", message)


def _convert(body: bytes, type: type[Body], payload_limit: int) -> Body:
    fields = _fields(type)
    try:
        found = strict_json(body) if body.strip() else {}
        if not isinstance(found, dict):
            raise _invalid(
                f"the body must be a JSON object with {', '.join(fields)}" if fields else "the body must be empty, or {}"
            )
        for name in found:
            if name not in fields:
                raise _invalid(unknown_field(name, fields))
        values = {name: _raw(value, payload_limit) if fields[name] else value for name, value in found.items()}
        # Numbers beyond a double have become infinite, and escapes may have made unpaired surrogates, which no answer can hold.
        _written([value for name, value in values.items() if not fields[name]]).encode()
        return msgspec.convert(values, type, strict=True)
    except NotJson as error:
        raise _invalid(f"the body is not JSON: {error}") from None
    except InvalidArgument as error:
        raise _invalid(str(error)) from None
    except msgspec.ValidationError as error:
        raise _invalid(complaint(str(error), fields)) from None
    except UnicodeEncodeError:
        raise _invalid("the body is not JSON: a text in it has an unpaired surrogate") from None
    except (ValueError, RecursionError):
        raise _invalid("the body has a number out of range, or is nested too deep") from None


def _raw(value: JSON, limit: int) -> Raw:
    text = encode(value, sys.maxsize).encode()
    if len(text) > limit:
        raise _too_large("the payload", limit)
    return Raw(text)


@functools.lru_cache
def _fields(type: type[msgspec.Struct]) -> Mapping[str, bool]:
    """The names of the fields, and whether each holds `Raw`."""
    return {field.encode_name: _holds_raw(field.type) for field in msgspec.structs.fields(type)}


def _holds_raw(kind: object) -> bool:
    return kind is Raw or any(_holds_raw(part) for part in get_args(kind))
