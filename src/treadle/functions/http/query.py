"""Query parameters: those that are known, once each."""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import Request

from treadle.core.errors import InvalidArgument
from treadle.functions.profile import LIST_DEFAULT, LIST_MOST


def read_query(request: Request, known: Collection[str] = ()) -> dict[str, str]:
    """The parameters by name. Raises `InvalidArgument` for one that is unknown or there twice (F14)."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            there = f"known are {', '.join(known)}" if known else "there are none here"
            raise InvalidArgument(f"unknown query parameter {name[:80]!r}; {there}")
        if name in found:
            raise InvalidArgument(f"the query parameter {name!r} is there twice; give it once")
        found[name] = value
    return found


def read_limit(text: str | None) -> int:
    """How many to list, from 1 to 500. Raises `InvalidArgument` (F10)."""
    if text is None:
        return LIST_DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= LIST_MOST):
        raise InvalidArgument(f"limit must be a whole number from 1 to {LIST_MOST}, not {text[:80]!r}")
    return int(text)
