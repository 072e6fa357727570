"""Paths of requests, in which an odd name or id stays one segment."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlencode


def segment(what: str, value: object) -> str:
    """The text as one percent-encoded segment of a path. Raises `ValueError` for what cannot be one.

    Encoding alone is not enough. Servers decode a path before they route it, so that `%2F` parts segments like `/`; proxies
    resolve `.` and `..`, encoded or not; and an empty segment leads to the collection above.
    """
    if not isinstance(value, str) or value in ("", ".", "..") or "/" in value or "\\" in value:
        raise ValueError(f"{what} must be text that can be one segment of a path, not {value!r:.80}")
    return _quoted(what, value, "")


def below(what: str, value: str) -> str:
    """A path of any number of segments, and maybe a query, to be put behind another one; what is encoded in it stays so."""
    path, mark, query = value.partition("?")
    if not path.startswith("/"):
        raise ValueError(f"{what} must begin with '/', not {value[:80]!r}")
    if not {".", ".."}.isdisjoint(unquote(path).replace("\\", "/").split("/")):
        raise ValueError(f"{what} must not hold the segments '.' and '..': {value[:80]!r}")
    return _quoted(what, path, "/%:@!$&'()*+,;=") + mark + _quoted(what, query, "/%:@!$&'()*+,;=?")


def with_query(path: str, **fields: object) -> str:
    """The path with a query of those fields that are not None."""
    return f"{path}?{urlencode({name: value for name, value in fields.items() if value is not None})}"


def _quoted(what: str, value: str, safe: str) -> str:
    try:
        return quote(value, safe=safe)
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} holds {error.object[error.start]!r}, half of a character, and cannot be sent") from None
