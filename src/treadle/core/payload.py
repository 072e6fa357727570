"""Payloads: what JSON means, checked strictly on the way in and given back exactly (E4, E5)."""

from __future__ import annotations

import json
from typing import TypeAlias

from treadle.core.errors import InvalidArgument

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

MAX_PAYLOAD = 1_048_576
MAX_DEPTH = 100

_dumps = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")).encode
_scan = json.JSONDecoder().raw_decode
_LEAVES = frozenset({str, int, float, bool, type(None)})


def encode(payload: object, limit: int = MAX_PAYLOAD) -> str:
    """The payload as compact JSON. Raises `InvalidArgument` for what is not JSON or is over `limit` bytes of UTF-8."""
    if payload is None:
        return "null"
    try:
        text = _dumps(payload)
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"the payload is not JSON: an unpaired surrogate {error.object[error.start]!r} cannot be stored as UTF-8"
        ) from None
    except RecursionError:
        raise InvalidArgument(f"the payload is nested deeper than {MAX_DEPTH} levels") from None
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the payload is not JSON: {str(error)[:200]}") from None
    if size > limit:
        raise InvalidArgument(f"the payload is {size:,} bytes of JSON; the limit is {limit:,}")
    if type(payload) not in _LEAVES:
        _check(payload)  # after `_dumps`, which has refused circles and bounded the size of this walk
    return text


def _loads(text: str) -> JSON:
    value: JSON = json.loads(text)
    return value


def decode(text: str) -> JSON:
    """What the stored text means."""
    value: JSON
    value, end = _scan(text)  # what `json.loads` does, less its look for white space, of which compact JSON has none
    return value if end == len(text) else _loads(text)


def _check(payload: object) -> None:
    """Refuse what `json` would change in silence: keys that are not text, and depth beyond MAX_DEPTH."""
    level: list[object] = [payload]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for value in level:
            if isinstance(value, dict):
                for key in value:
                    if not isinstance(key, str):
                        raise InvalidArgument(
                            f"the payload is not JSON: the key {key!r} is {type(key).__name__}, keys must be text"
                        )
                below += [item for item in value.values() if type(item) not in _LEAVES]
            elif isinstance(value, (list, tuple)):
                below += [item for item in value if type(item) not in _LEAVES]
        if not below:
            return
        level = below
    raise InvalidArgument(f"the payload is nested deeper than {MAX_DEPTH} levels")
