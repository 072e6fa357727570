"""An operation of the API as a value: its route, who may call it, what it takes and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from treadle.core.payload import JSON

Needs = Literal["service_role", "any key", "nothing"]


def described(description: str, **schema: Any) -> Meta:
    """What a field is, and what the API's description says of it beyond its type; the checks are those of the engine's side."""
    return Meta(description=description, extra_json_schema=schema)


@dataclass(frozen=True, slots=True)
class Link:
    """What can be done with an answer: another operation, and which field of the answer's data each of its parameters takes."""

    operation: str
    takes: Mapping[str, str]
    description: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in the path, the query or a header. `schema` is JSON Schema."""

    name: str
    place: Literal["path", "query", "header"]
    schema: Mapping[str, Any]
    description: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path.

    `body` and `answer` are the types that msgspec reads and writes, None for none. `status` is that of success, `success` what
    it means, `also` further statuses of success, and `refusals` the statuses of the errors that are its own, each with what it
    means. An answer that is no JSON has no envelope, nor has one that is not `enveloped`. `example` is what an answer may look
    like, where it differs from what its fields have for examples. Texts are CommonMark of the plainest
    sort: paragraphs, and `code`.
    """

    method: str
    path: str
    id: str
    group: str
    summary: str
    run: Callable[[Request], Awaitable[Response]]
    needs: Needs = "service_role"
    description: str = ""
    parameters: Sequence[Parameter] = ()
    body: Any = None
    body_required: bool = False
    answer: Any = None
    status: int = 200
    success: str = "It is done."
    example: Mapping[str, JSON] = field(default_factory=dict)
    links: Sequence[Link] = ()
    also: Mapping[int, str] = field(default_factory=dict)
    refusals: Mapping[int, str] = field(default_factory=dict)
    content_type: str = "application/json"
    enveloped: bool = True
