"""The OpenAPI 3.1 document, made from the operations and the types that they read and write (F13)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args, get_type_hints

import msgspec

from treadle.functions.http.described_failures import ERROR, ERROR_SCHEMA, FAILURES, expected_failures, shared, shared_responses
from treadle.functions.http.operation import Link, Operation, Parameter
from treadle.functions.http.samples import example
from treadle.functions.http.shapes import describe_shapes

_REF = "#/components/schemas/{name}"
_SCHEMES = {
    "apikey": {
        "type": "apiKey",
        "in": "header",
        "name": "apikey",
        "description": "One of the keys that the first start printed: `service_role`, `anon` or `admin`.",
    },
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key, or the token of a signed-in user."},
}


def openapi(
    operations: Sequence[Operation], version: str, introduction: str = "", groups: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The document. `groups` says of each group of operations what it is for."""
    types = sorted({kind for one in operations for kind in (one.body, one.answer) if kind is not None}, key=str)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = re.sub(r":\w+}", "}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, schema_of)
    for kind in types:
        _date_times(kind, components)
    for component in components.values():
        component.setdefault("additionalProperties", False)
        component["properties"] = {name: _plain(of) for name, of in component.get("properties", {}).items()}
    describe_shapes(components)
    meanings = groups or {}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "treadle functions",
            "version": version,
            "summary": "Functions in any language as background jobs, with cron and dead letters.",
            "description": introduction,
        },
        "tags": [
            {"name": name, "description": meanings.get(name, "")}
            for name in dict.fromkeys(operation.group for operation in operations)
        ],
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": dict(ERROR_SCHEMA)},
            "responses": shared_responses(),
            "securitySchemes": _SCHEMES,
        },
    }
    for operation in operations:
        if operation.example:
            _exemplify(document, operation)
    return document


def _exemplify(document: Mapping[str, Any], operation: Operation) -> None:
    success = document["paths"][operation.path][operation.method.lower()]["responses"][str(operation.status)]
    content = success["content"]["application/json"]
    whole: Any = example(content["schema"], document)
    for one in whole["data"] if isinstance(whole["data"], list) else [whole["data"]]:
        one.update(operation.example)
    success["content"] = {"application/json": {**content, "example": whole}}


def _date_times(kind: Any, components: Mapping[str, dict[str, Any]]) -> None:
    """Say of each field that is a datetime how it is written, which a plain dataclass cannot."""
    for type_ in (kind, *get_args(kind)):
        properties = components.get(getattr(type_, "__name__", ""), {}).get("properties", {})
        for name, hint in get_type_hints(type_).items() if properties else ():
            if datetime in (hint, *get_args(hint)):
                for schema in properties[name].get("anyOf", [properties[name]]):
                    if schema["type"] == "string":
                        schema["format"] = "date-time"


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A choice between plain types as a list of them, which is easier to read; a whole number is a number."""
    choices = schema.get("anyOf", ())
    if not choices or any(not one.keys() <= {"type", "format"} for one in choices):
        return dict(schema)
    types = [one["type"] for one in choices if one["type"] != "integer" or {"type": "number"} not in choices]
    formats = {key: one[key] for one in choices for key in one if key == "format"}
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {"type": types[0] if len(types) == 1 else types, **formats, **rest}


def _operation(operation: Operation, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.group],
        "summary": operation.summary,
        "security": _security(operation),
        "responses": dict(sorted(_responses(operation, schema_of))),
    }
    if operation.description:
        described["description"] = operation.description
    if operation.parameters:
        described["parameters"] = [_parameter(one) for one in operation.parameters]
    if operation.body is not None:
        content = {"application/json": {"schema": schema_of[operation.body]}}
        described["requestBody"] = {"required": operation.body_required, "content": content}
    elif _passes(operation) and operation.method in ("POST", "PUT", "PATCH"):
        described["requestBody"] = {"description": "Whatever the function takes.", "content": {"*/*": {"schema": {}}}}
    return described


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    """Either scheme, with the role that is needed."""
    if operation.needs == "nothing":
        return []
    roles: list[str] = [operation.needs] if operation.needs == "service_role" else []
    return [{scheme: roles} for scheme in _SCHEMES]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }


def _passes(operation: Operation) -> bool:
    """Whether a function answers, and not the service."""
    return operation.content_type == "*/*"


def _responses(operation: Operation, schema_of: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    content = {operation.content_type: {"schema": _success(operation, schema_of)}}
    links = {link.operation: _link(link) for link in operation.links}
    successes = {} if _passes(operation) else {operation.status: operation.success, **operation.also}
    for status, meaning in successes.items():
        yield str(status), {"description": meaning, "content": content, **({"links": links} if links else {})}
    for status, meaning in operation.refusals.items():
        yield str(status), {"description": meaning, "content": _failure_content(operation)}
    for status in expected_failures(operation):
        own = {"description": FAILURES[status].description, "content": _failure_content(operation)}
        yield str(status), own if _passes(operation) else shared(status)
    if _passes(operation):
        yield "default", {"description": "What the function answers, of any type and with any status."}


def _success(operation: Operation, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    if operation.content_type.startswith("text/"):
        return {"type": "string"}
    if _passes(operation):
        return {}
    if not operation.enveloped:
        return {"type": "object"}
    data = {"type": "null"} if operation.answer is None else schema_of[operation.answer]
    return {
        "type": "object",
        "required": ["data", "meta"],
        "additionalProperties": False,
        "properties": {"data": data, "meta": {"type": "null"}},
    }


def _failure_content(operation: Operation) -> dict[str, Any]:
    """The body of a failure; the functions behind a direct call may answer the same status, with anything."""
    if not _passes(operation):
        return {"application/json": {"schema": {"$ref": ERROR}}}
    return {"*/*": {"schema": {"anyOf": [{"$ref": ERROR}, {}]}}}


def _link(link: Link) -> dict[str, Any]:
    parameters = {name: f"$response.body#/data/{taken}" for name, taken in link.takes.items()}
    return {"operationId": link.operation, "parameters": parameters, "description": link.description}
