"""What is wrong with a request's fields, in words: msgspec's messages put the way the API puts them (F14)."""

from __future__ import annotations

import re
from collections.abc import Collection

_EXPECTED = re.compile(
    r"Expected `(?P<kinds>[^`]+)`(?P<bound>[^`]*?)(?:, got `(?P<got>[^`]+)`)?(?: - at `(?P<path>.*)`)?\Z", re.DOTALL
)
_ENUM = re.compile(r"Invalid enum value (?P<value>.*?)(?: - at `(?P<path>.*)`)?\Z", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<field>.*?)`(?: - at `(?P<path>.*)`)?\Z", re.DOTALL)
_ANY = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>.*)`)?\Z", re.DOTALL)
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def unknown_field(name: str, known: Collection[str]) -> str:
    """A field that the request must not have."""
    return f"unknown field {name[:80]!r}; known are {', '.join(known) or 'none here'}"


def complaint(message: str, known: Collection[str]) -> str:
    """The sentence for a `msgspec.ValidationError`. `known` are the fields that the body may have."""
    if found := _EXPECTED.match(message):
        kinds = dict.fromkeys(_KINDS.get(kind, kind) for kind in found["kinds"].split(" | "))
        if "a number" in kinds:
            kinds.pop("a whole number", None)
        wanted = " or ".join(kinds) + found["bound"]
        got = "a decimal number" if found["got"] == "float" else _KINDS.get(found["got"], found["got"])
        return f"{_field(found['path'])} must be {wanted}" + (f", not {got}" if got else "")
    if found := _ENUM.match(message):
        return f"{_field(found['path'])} must not be {found['value'][:80]}"
    if found := _MISSING.match(message):
        inside = f" in {_field(found['path'])}" if found["path"] else ""
        return f"the field {found['field']!r} is missing{inside}; " + (
            f"known are {', '.join(known)}" if not inside else "add it"
        )
    found = _ANY.match(message)
    assert found is not None  # it matches anything
    return f"{_field(found['path'])}: {found['what'].replace('`', chr(39)).lower()}"


def _field(path: str | None) -> str:
    return path.removeprefix("$").removeprefix(".")[:200] if path and path != "$" else "the body"
