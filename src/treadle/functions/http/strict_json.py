"""JSON as it is written: every number exact, no key twice, nothing that JSON does not have (E4, F14)."""

from __future__ import annotations

import json
import sys

from treadle.core.payload import JSON, MAX_DEPTH


class NotJson(ValueError):
    """The bytes are not JSON; the message says what is wrong, and where."""


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) != len(pairs):  # which of the two was meant, nobody knows
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise NotJson(f"the key {key[:80]!r} is there twice")
            seen.add(key)
    return found


def _constant(text: str) -> JSON:
    raise NotJson(f"{text} is not JSON")


_scan = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant).decode


def strict_json(body: bytes) -> JSON:
    """What the bytes mean. Raises `NotJson`."""
    if body.startswith(b"\xef\xbb\xbf"):
        raise NotJson("it begins with a byte order mark; send it without")
    try:
        value: JSON = _scan(body.decode())
    except UnicodeDecodeError as error:
        raise NotJson(f"it is not UTF-8: byte 0x{body[error.start]:02x} at position {error.start}") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg[0].lower()}{error.msg[1:]} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotJson(f"it is nested deeper than {MAX_DEPTH} levels") from None
    except NotJson:
        raise
    except ValueError:
        raise NotJson(f"a whole number in it has more than {sys.get_int_max_str_digits():,} digits") from None
    return value
