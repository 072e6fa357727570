"""What of a request's and an answer's head passes through a direct call, and what belongs to one side alone (F3)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from treadle.functions.http.failures import ApiFailure
from treadle.functions.http.head import METHODS

Headers = Iterable[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_NOT_TO_FUNCTIONS = _HOP_BY_HOP | {b"host", b"expect", b"apikey"}
_OURS = b"x-treadle-"
_ODD = re.compile(rb"[^a-z0-9]")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def refuse_unpassable(method: str, headers: Headers) -> None:
    """Raise `ApiFailure` for methods that are not passed on, such as TRACE, and for a websocket."""
    if method not in METHODS:
        allowed = ", ".join(sorted(METHODS))
        raise ApiFailure(405, "method_not_allowed", f"functions are called with {allowed}", {"allow": allowed})
    if any(name == b"upgrade" and b"websocket" in value.lower() for name, value in headers):
        raise ApiFailure(501, "not_implemented", "websockets do not reach functions; call them with plain requests")


def to_function(headers: Headers, role: str, user_id: str | None) -> list[tuple[str, str]]:
    """The headers that a function gets: those of the caller less what is between it and us, and who is calling.

    Names count as equal that CGI and WSGI fold into one, where `_`, and for some `.`, is as good as `-`. Bytes that are no
    UTF-8 are read as Latin-1.
    """
    sent = list(headers)
    named = _named_by_connection(sent)
    passed: list[tuple[str, str]] = []
    for written, value in sent:
        name = written.lower()
        folded = _ODD.sub(b"-", name)
        if folded.startswith(_OURS) or folded in _NOT_TO_FUNCTIONS or name in named:
            continue
        if folded == b"content-length" or (folded == b"authorization" and _is_bearer(value)):
            continue
        passed.append((name.decode("latin-1"), _text(value)))
    passed.append(("x-treadle-role", _own(role)))
    if user_id is not None:
        passed.append(("x-treadle-user-id", _own(user_id)))
    return passed


def to_caller(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers that a caller gets: those of the function less what is between it and us."""
    sent = list(headers)
    dropped = _HOP_BY_HOP | _named_by_connection(sent)
    return [(name, value) for name, value in sent if name.lower() not in dropped]


def fault_of_head(status: int, headers: Headers) -> str | None:
    """Why the head of a function's answer cannot be passed on, if there is a reason."""
    if status == 101:
        return "it answered with a change of protocol"
    if not 100 <= status <= 999:
        return f"its status is {status}"
    for name, value in headers:
        if not _NAME.match(name) or _CONTROL.search(value):
            return f"its header {name.decode('latin-1')[:40]!r} has characters that no header may have"
    return _framing_fault(headers)


def _framing_fault(headers: Headers) -> str | None:
    """What leaves the length of the answer in doubt, if anything."""
    lengths = {value for name, value in headers if name.lower() == b"content-length"}
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if codings and (lengths or codings != [b"chunked"]):
        return "its answer has a transfer-encoding besides a length, or another than chunked"
    if len(lengths) > 1 or not all(value.isdigit() for value in lengths):
        return "its answer has no single content-length"
    return None


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    """The headers that are for this connection alone. That of a body's length is not, whatever is said."""
    values = (value for name, value in headers if name.lower() == b"connection")
    named = frozenset(token.strip().lower() for value in values for token in value.split(b","))
    return named - {b"content-length", b"content-type"}


def _is_bearer(value: bytes) -> bool:
    scheme = value.strip().split(None, 1)[:1]
    return bool(scheme) and scheme[0].lower() == b"bearer"


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _own(value: str) -> str:
    if not (value and value.isascii() and value.isprintable() and value == value.strip()):
        raise ApiFailure(400, "invalid_request", f"the caller's id cannot stand in a header: {value[:80]!r}")
    return value
