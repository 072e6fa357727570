"""Values as the bytes of a request's body; what JSON cannot say is refused before anything is sent."""

from __future__ import annotations

import json

_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_LEAVES = frozenset({str, int, float, bool, type(None)})


def json_object(**fields: object) -> bytes:
    """A JSON object of these fields, in their order. Raises `ValueError` naming the field that is not JSON."""
    return b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), json_value(name, value)) for name, value in fields.items())


def json_value(name: str, value: object) -> bytes:
    """The value as compact JSON, in UTF-8. Raises `ValueError`."""
    try:
        text = _dumps(value).encode()
        _check_keys(value)  # after `_dumps`, which has refused circles
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} is not JSON: it holds {error.object[error.start]!r}, half of a character") from None
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply to be sent as JSON") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not JSON: {str(error)[:200]}") from None
    return text


def _check_keys(value: object) -> None:
    """Refuse what `json` would change in silence: keys that are not text (of which `1` and `"1"` would become one)."""
    level = [value]
    while level:
        below: list[object] = []
        for one in level:
            if isinstance(one, dict):
                for key in one:
                    if not isinstance(key, str):
                        raise TypeError(f"the key {key!r} is {type(key).__name__}, keys must be text")
                below += [item for item in one.values() if type(item) not in _LEAVES]
            elif isinstance(one, (list, tuple)):
                below += [item for item in one if type(item) not in _LEAVES]
        level = below
