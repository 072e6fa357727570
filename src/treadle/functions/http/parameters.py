"""The parameters that the routes of jobs have in common, as the API describes them (F9, F10)."""

from __future__ import annotations

import re

from starlette.requests import Request

from treadle.client import wire
from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import MAX_KEY
from treadle.functions.function import MAX_NAME, NAME_PATTERN, RESERVED
from treadle.functions.http.operation import Parameter
from treadle.functions.profile import LIST_DEFAULT, LIST_MOST

FUNCTION_NAME = Parameter(
    "name",
    "path",
    {
        "type": "string",
        "pattern": f"^{NAME_PATTERN}$",
        "maxLength": MAX_NAME,
        "not": {"enum": sorted(RESERVED)},
        "examples": ["send-report"],
    },
    "The function's name.",
    required=True,
)
JOB_ID = Parameter(
    "id",
    "path",
    {"type": "string", "format": "uuid", "examples": ["0199c9d2-5b1e-7c4a-9a53-6f1f0c8e2b7d"]},
    "The job's id.",
    required=True,
)
LIMIT = Parameter(
    "limit",
    "query",
    {"type": "integer", "minimum": 1, "maximum": LIST_MOST, "default": LIST_DEFAULT, "examples": [20]},
    "How many jobs at most.",
)
STATUS = Parameter(
    "status", "query", {"type": "string", "enum": list(wire.STATUSES), "examples": ["dead"]}, "Only jobs of this status."
)
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "header",
    {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_KEY,
        "pattern": "^[!-~]([ -~]*[!-~])?$",
        "examples": ["report:2026-10"],
    },
    "As long as a job of this function with this key is stored, that one is answered, with 200, and none is made.",
)
_KEY = re.compile(r"[!-~]([ -~]*[!-~])?\Z")


def read_idempotency_key(request: Request) -> str | None:
    """The key, if there is one. Raises `InvalidArgument`."""
    keys = [value.strip(" \t") for value in request.headers.getlist("idempotency-key")]
    if len(keys) > 1:
        raise InvalidArgument("the header Idempotency-Key is there twice; give it once")
    if not keys:
        return None
    if not _KEY.match(keys[0]):
        raise InvalidArgument(
            f"the header Idempotency-Key must be 1 to {MAX_KEY} printable characters of ASCII, not {keys[0][:80]!r}"
        )
    return keys[0]
