"""The path of a direct call: job paths are told apart in every spelling, so that nobody forges a job call (F3)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NewType
from urllib.parse import unquote_to_bytes

from treadle.functions.http.failures import ApiFailure

_ROUNDS = 8  # of percent-decoding; nothing sensible is encoded more often
_PLAIN = re.compile(r"(?!/jobs/)(?:/[A-Za-z0-9_~-]+)*/?\Z", re.IGNORECASE)  # there is but one way to read it
_PARAMETERS = re.compile(r";[^/]*")
_BLANKS = re.compile(r"[\x00-\x20\x7f]+")


DirectPath = NewType("DirectPath", str)


def direct_path(path: str) -> DirectPath:
    """The path, as it was sent, unless any server might take it for one below `/jobs/`, or it climbs with `..`.

    Servers differ in what they decode, fold and resolve, and how often; so each of the readings must be harmless. Raises
    `ApiFailure`: 403 for a job's path, 400 for one that climbs.
    """
    if _PLAIN.match(path):
        return DirectPath(path)
    climbs = False
    for reading in _readings(path):
        names = reading.split("/")
        if _below_jobs(names) or _below_jobs(_resolved(names)):
            raise ApiFailure(403, "forbidden", "paths below /jobs/ are for job calls alone; no direct call reaches them")
        climbs = climbs or ".." in names
    if climbs:
        raise ApiFailure(400, "invalid_request", "the path must not climb with '..'; send it resolved")
    return DirectPath(path)


def _readings(path: str) -> Iterator[str]:
    """The path as it is, decoded once, twice and so on, each as strict and as lax servers read it."""
    encoded = path.encode("utf-8", "surrogateescape")
    for _ in range(_ROUNDS):
        folded = unicodedata.normalize("NFKC", encoded.decode("utf-8", "replace")).casefold().replace("\\", "/")
        for reading in (folded, _PARAMETERS.sub("", folded)):
            yield reading
            yield _lax(reading)
        decoded = unquote_to_bytes(encoded)
        if decoded == encoded:
            return
        encoded = decoded
    raise ApiFailure(400, "invalid_request", f"the path is percent-encoded more than {_ROUNDS} times over")


def _lax(path: str) -> str:
    """Without the white space, control characters and trailing dots that some servers strip from names."""
    names = (_BLANKS.sub("", name) for name in path.split("/"))
    return "/".join(name if name in (".", "..") else name.rstrip(".") for name in names)


def _resolved(names: Sequence[str]) -> list[str]:
    """Without dot segments; what names a folder still ends in an empty name."""
    resolved: list[str] = []
    for name in names:
        if name == "..":
            del resolved[-1:]
        elif name not in ("", "."):
            resolved.append(name)
    return [*resolved, ""] if names[-1] in ("", ".", "..") else resolved


def _below_jobs(names: Sequence[str]) -> bool:
    """Whether the first name is `jobs`, and another follows, be it an empty one."""
    for place, name in enumerate(names):
        if name:
            return name == "jobs" and place + 1 < len(names)
    return False
