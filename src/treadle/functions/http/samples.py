"""A request to copy and the answer to expect, made for each operation of an OpenAPI document (F13)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from treadle.core.payload import JSON

_SHORT = 48  # characters of JSON that stand on one line
_KEYS = {True: "TREADLE_SERVICE_ROLE_KEY", False: "TREADLE_ANON_KEY"}


def example(schema: Mapping[str, Any], document: Mapping[str, Any]) -> JSON:
    """A value of that schema: its own example if it has one."""
    match schema:
        case {"$ref": str(path)}:
            return example(referred(document, path), document)
        case {"examples": [first, *_]}:
            return cast("JSON", first)
        case {"enum": [first, *_]} | {"default": first}:
            return cast("JSON", first)
        case {"properties": dict(properties)}:
            return {name: example(of, document) for name, of in properties.items()}
        case {"items": dict(items)}:
            return [example(items, document)]
        case {"anyOf": [first, *_]}:
            return example(first, document)
        case {"type": "string"}:
            return "…"
        case _:
            return None


def referred(document: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    """What a `$ref` within the document means."""
    found: Any = document
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return cast("Mapping[str, Any]", found)


def request_sample(path: str, method: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """The operation as a command for a shell, with the address and the key in the environment."""
    query = []
    for parameter in operation.get("parameters", ()):
        value = str(example(parameter["schema"], document) or "")
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", value.replace("…", parameter["name"]))
        elif parameter["in"] == "query":
            query.append(f"{parameter['name']}={value}")
    url = f'"$TREADLE_URL{path}{"?" if query else ""}{"&".join(query)}"'
    lines = [f"curl {url}" if method == "get" else f"curl -X {method.upper()} {url}"]
    for scheme in operation["security"][:1]:
        lines.append(f'-H "apikey: ${_KEYS["service_role" in scheme["apikey"]]}"')
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        lines.append('-H "content-type: application/json"')
        lines.append(f"-d '{shown(example(body['schema'], document), '  ').replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'")
    return " \\\n  ".join(lines)


def answer_sample(operation: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """The body of the first success, if it is JSON of a known shape."""
    successes = [of for status, of in operation["responses"].items() if status.startswith("2")]
    for success in reversed(successes):  # 201 rather than 200, where there are both
        content = success["content"].get("application/json", {"schema": {}})
        if "example" in content:
            return shown(content["example"])
        if "properties" in content["schema"]:
            return shown(example(content["schema"], document))
    return ""


def shown(value: JSON, indent: str = "") -> str:
    """JSON for the eye: what is short stays on a line."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _SHORT or not isinstance(value, dict | list):
        return text
    inner = indent + "  "
    if isinstance(value, dict):
        opening, closing = "{", "}"
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {shown(of, inner)}" for key, of in value.items()]
    else:
        opening, closing = "[", "]"
        parts = [shown(of, inner) for of in value]
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{closing}"
