"""The head of a request, judged: where two readings of it are possible, neither is chosen (F14)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_OPENING = re.compile(rb"[\r\n]*(?P<method>[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64})(?: |\Z)")
_TARGET = re.compile(rb"(?:https?://[^/?#]+)?(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a request that the application does not get to see."""

    status: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Head:
    """What was sent. Names of headers are in lower case; `target` is what stands behind the method."""

    method: str
    target: bytes
    version: str
    headers: Sequence[tuple[bytes, bytes]]

    @property
    def size(self) -> int:
        """About how many bytes it has."""
        return len(self.target) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    @property
    def body_size(self) -> int | None:
        """How many bytes of body follow; None where only its chunks say so. Of two that differ, the parser has refused one."""
        lengths = dict(self.headers)
        return None if b"transfer-encoding" in lengths else int(lengths.get(b"content-length", 0))

    def refusal(self, limit: int) -> Refusal | None:
        """What is wrong with it, if anything. It may have `limit` bytes."""
        hosts = sum(name == b"host" for name, _ in self.headers)
        codings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
        if self.size > limit:
            return too_large(limit)
        if self.version not in ("1.0", "1.1"):
            return invalid(f"HTTP/{self.version} is not spoken here, HTTP/1.1 is")
        if self.method == "CONNECT":
            return not_allowed(self.method)
        if hosts > 1 or (hosts == 0 and self.version == "1.1"):
            return invalid("the request must have one host header")
        if codings and self.version == "1.0":
            return invalid("HTTP/1.0 has no transfer-encoding")
        if codings and codings != [b"chunked"]:
            return Refusal(501, "not_implemented", "the one transfer-encoding that is read is chunked")
        if _TARGET.match(self.target) is None and self.target != b"*":
            return invalid("the target of the request must be a path, without a fragment")
        return None

    @property
    def scope(self) -> dict[str, Any]:
        """Its part of the ASGI scope. The path stays as it was sent in `raw_path`."""
        target = _TARGET.match(self.target)
        path, query = (self.target, b"") if target is None else (target["path"] or b"/", target["query"] or b"")
        return {
            "method": self.method,
            "http_version": self.version,
            "raw_path": path,
            "path": unquote(path.decode("ascii")),
            "query_string": query,
        }


def too_large(limit: int) -> Refusal:
    """A head that is larger than that."""
    return Refusal(431, "head_too_large", f"the head of the request is larger than {limit:,} bytes")


def invalid(message: str) -> Refusal:
    """What is no request, or none that is understood."""
    return Refusal(400, "invalid_request", message)


def not_allowed(method: str) -> Refusal:
    """A method that nothing here has."""
    return Refusal(405, "method_not_allowed", f"the method {method} is not allowed here")


def unreadable(opening: bytes, reason: str) -> Refusal:
    """What the parser refused at its first line; `opening` is how that began, as far as it was there (F14)."""
    line = _OPENING.match(opening)
    return invalid(f"this is no HTTP request: {reason}") if line is None else not_allowed(line["method"].decode("ascii"))
