"""The API's documentation as one page, made by the service itself, so that it works offline (F13)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from treadle.functions.http.described_failures import FAILURES, shared
from treadle.functions.http.samples import answer_sample, referred, request_sample

_SPANS = (("minimum", "maximum", ""), ("minLength", "maxLength", " characters"))
_FORMATS = {"uuid": "a UUID", "date-time": "a time in RFC 3339", "cron": "a cron expression"}
_METHOD = re.compile(r" with [A-Z]+\b")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation on the page, or several that differ in their method alone."""

    path: str
    operations: Mapping[str, Mapping[str, Any]]
    request: str
    answer: str

    @property
    def first(self) -> Mapping[str, Any]:
        """What is said of all."""
        return next(iter(self.operations.values()))

    @property
    def title(self) -> str:
        """What it does."""
        summary: str = self.first["summary"].rstrip(".")
        return summary if len(self.operations) == 1 else _METHOD.sub("", summary)


def docs_page(document: Mapping[str, Any]) -> HTMLResponse:
    """The page for an OpenAPI document. It loads nothing, runs no script, and may not be framed."""
    here = resources.files(__package__)
    style = (here / "docs.css").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"shape": _shape, "bounds": _bounds, "prose": _prose, "code": _code, "path": _path, "slug": _slug}
    environment.globals |= {"entries": lambda tag: _entries(document, tag), "whole": lambda one: _whole(document, one)}
    page = environment.from_string((here / "docs.html").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    failures = {status: _whole(document, shared(status)) for status in FAILURES}
    html = page.render(document=document, failures=failures, style=Markup(style))  # noqa: S704 - our own file, not anybody's input
    return HTMLResponse(html, headers={"content-security-policy": policy, "x-content-type-options": "nosniff"})


def _entries(document: Mapping[str, Any], tag: str) -> list[Entry]:
    """The operations of a group, those of one path that are alike put together."""
    found = []
    for path, methods in document["paths"].items():
        alike: dict[str, dict[str, Mapping[str, Any]]] = {}
        for method, operation in methods.items():
            if tag in operation["tags"]:
                said = {key: of for key, of in operation.items() if key not in ("operationId", "summary", "requestBody")}
                alike.setdefault(str(said), {})[method] = operation
        for operations in alike.values():
            method, first = next(iter(operations.items()))
            found.append(Entry(path, operations, request_sample(path, method, first, document), answer_sample(first, document)))
    return found


def _whole(document: Mapping[str, Any], response: Mapping[str, Any]) -> Mapping[str, Any]:
    """A response, or the one that it refers to."""
    return referred(document, response["$ref"]) if "$ref" in response else response


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")


def _prose(text: str) -> Markup:
    """Paragraphs of CommonMark's plainest sort."""
    return Markup("\n").join(Markup("<p>{}</p>").format(_code(part.strip())) for part in text.split("\n\n") if part.strip())


def _code(text: str) -> Markup:
    """A line with its `code`."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - what is not ours in it was escaped just now


def _path(path: str) -> Markup:
    """A path whose parameters stand out, and which may be broken at its slashes."""
    parts = (Markup("<var>{}</var>").format(part) if part.startswith("{") else escape(part) for part in path.split("/"))
    return Markup("/<wbr>").join(parts)


def _shape(schema: Mapping[str, Any]) -> Markup:
    """What a schema is, in a few words, linked to where it is spelled out."""
    match schema:
        case {"$ref": str(path)}:
            return Markup('<a href="#shape-{0}">{0}</a>').format(path.rpartition("/")[2])
        case {"anyOf": list(choices)}:
            return Markup(" or ").join(dict.fromkeys(_shape(one) for one in choices))
        case {"type": "array", "items": dict(items)}:
            return Markup("list of ") + _shape(items)
        case {"properties": {"data": dict(data)}}:
            return Markup("data: ") + _shape(data)
        case {"type": list(types)}:
            return escape(" or ".join(types))
        case {"type": str(kind)}:
            return escape(kind)
        case {"enum": _}:
            return escape("string")
        case _:
            return escape("anything")


def _bounds(schema: Mapping[str, Any]) -> Markup:
    """What a value must be, beyond its type."""
    return Markup("; ").join(_each_bound(schema))


def _each_bound(schema: Mapping[str, Any]) -> Iterator[Markup]:
    if "format" in schema:
        yield escape(_FORMATS.get(schema["format"], schema["format"]))
    if "enum" in schema:
        yield Markup("one of ") + Markup(", ").join(Markup("<code>{}</code>").format(one) for one in schema["enum"])
    for least, most, unit in _SPANS:
        match schema.get(least), schema.get(most):
            case None, None:
                pass
            case low, None:
                yield escape(f"at least {low:,}{unit}")
            case None, high:
                yield escape(f"at most {high:,}{unit}")
            case low, high:
                yield escape(f"from {low:,} to {high:,}{unit}")
    if "pattern" in schema:
        yield Markup("matches <code>{}</code>").format(schema["pattern"])
    if "not" in schema:
        yield Markup("but not ") + Markup(" or ").join(Markup("<code>{}</code>").format(one) for one in schema["not"]["enum"])
    if "default" in schema:
        yield Markup("<code>{}</code> if left out").format(schema["default"])
