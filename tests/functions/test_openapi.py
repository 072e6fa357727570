"""F13: the OpenAPI document is valid, says of each route what it takes and answers, and every answer matches it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31  # the official schema of OpenAPI 3.1
from starlette.routing import Route
from tests.functions.function_stores import Place, in_memory, place as place_of
from tests.functions.fuzz.cron_expressions import cron_expressions
from tests.functions.fuzz.served import FUNCTION, served
from tests.functions.live import live

from treadle.core.cron import Cron

ROOT = Path(__file__).parents[2]
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
SCHEMATHESIS = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"]
RULE = re.compile(r"\b[EFLSTW]\d{1,2}\b(?!\.)|``|:\w+:`|\bNone\b|\bTrue\b|\bFalse\b")


@pytest.fixture(scope="module")
def document() -> Any:
    """As the running service answers it."""

    async def fetch(here: Place) -> Any:
        async with live(here, role="api") as service:
            response = await service.http.get("/openapi.json")
            assert response.status_code == 200
            assert response.headers["content-type"] == "application/json"
            return response.json()

    with place_of("memory") as here:
        return asyncio.run(_closing(here, fetch))


async def _closing(here: Place, fetch: Any) -> Any:
    try:
        return await fetch(here)
    finally:
        await here.close()


def operations(document: Any) -> Iterator[tuple[str, str, Any]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert method in METHODS
            yield path, method, operation


def every(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Each object within the document, with the path to it."""
    if isinstance(value, dict):
        yield where, value
        for key, of in value.items():
            yield from every(of, f"{where}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, of in enumerate(value):
            yield from every(of, f"{where}/{index}")


def schemas(document: Any) -> Iterator[tuple[str, Any]]:
    for name, schema in document["components"]["schemas"].items():
        yield f"components/schemas/{name}", schema
    for where, found in every(document):
        if isinstance(found.get("schema"), dict):
            yield f"{where}/schema", found["schema"]


def fields(document: Any) -> Iterator[tuple[str, Any]]:
    for name, schema in document["components"]["schemas"].items():
        for where, found in every(schema, name):
            for field, of in found.get("properties", {}).items() if "/examples" not in where else ():
                yield f"{where}.{field}", of


def test_it_is_valid(document: Any) -> None:
    jsonschema_rs.Draft202012Validator(OPENAPI_31).validate(document)
    checked = 0
    for where, schema in schemas(document):
        assert jsonschema_rs.meta.is_valid(schema), where
        checked += 1
    assert checked > 50


def test_what_is_referred_to_is_there_and_used(document: Any) -> None:
    used = set()
    for where, found in every(document):
        if isinstance(found.get("$ref"), str):
            target: Any = document
            for name in found["$ref"].removeprefix("#/").split("/"):
                assert name in target, (where, found)
                target = target[name]
            used.add(found["$ref"])
    for kind in ("schemas", "responses"):
        for name in document["components"][kind]:
            assert f"#/components/{kind}/{name}" in used, name
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    tags = [tag["name"] for tag in document["tags"]]
    assert tags == list(dict.fromkeys(tag for _, _, operation in operations(document) for tag in operation["tags"]))
    for path, _, operation in operations(document):
        declared = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert declared == set(re.findall(r"{(\w+)}", path)), path
        for response in operation["responses"].values():
            for link in response.get("links", {}).values():
                assert link["operationId"] in ids


@in_memory
async def test_each_route_of_the_app_is_in_it_and_the_reverse(place: Place) -> None:
    async with live(place, role="api") as service:
        described = (await service.http.get("/openapi.json")).json()
        in_it = {(path, method.upper()) for path, method, _ in operations(described)}
        running = set()
        for route in service.service._site.app.routes:  # type: ignore[attr-defined]  # a Router
            assert isinstance(route, Route) and route.methods
            path = re.sub(r":\w+}", "}", route.path)
            running |= {(path, method) for method in route.methods}
        heads = {(path, "HEAD") for path, method in in_it if method == "GET"}  # which the introduction tells
        assert "where there is GET there is HEAD" in described["info"]["description"].replace("\n", " ")
        assert running == in_it | heads


@in_memory
async def test_the_running_service_routes_as_it_says(place: Place) -> None:
    """Each path with each method: what is described is routed, and what is not is 405 with what is allowed."""
    async with live(place, role="api") as service:
        described = (await service.http.get("/openapi.json")).json()
        for path, item in described["paths"].items():
            url = path.format(name="some-name", id=uuid.uuid4(), path="deep/er")
            for method in (*METHODS, "copy"):
                response = await service.http.request(method.upper(), url, headers={"apikey": service.keys["service_role"]})
                there = method in item or (method == "head" and "get" in item)
                assert (response.status_code != 405) is there, (method, url, response.text)
                if not there:
                    assert response.headers["allow"]
                if there:
                    responses = item[method if method in item else "get"]["responses"]
                    assert str(response.status_code) in responses or "default" in responses, (method, url, response.text)


def test_texts_are_for_readers(document: Any) -> None:
    """Everything is described, and no word in it is of the source."""
    for where, found in every(document):
        for key in ("description", "summary"):
            text = found.get(key)
            if isinstance(text, str):
                assert not RULE.search(text), (where, text)
                assert "  " not in text and text.count("`") % 2 == 0, (where, text)
    assert document["info"]["description"] and document["info"]["summary"].endswith(".")
    for tag in document["tags"]:
        assert tag["description"].endswith("."), tag
    for path, method, operation in operations(document):
        assert operation["summary"].endswith("."), (path, method)
        for parameter in operation.get("parameters", ()):
            assert parameter["description"].endswith("."), (path, parameter)
        for status, response in operation["responses"].items():
            assert "$ref" in response or response["description"].endswith("."), (path, status)
    for where, field in fields(document):
        assert field.get("description", "").endswith("."), where
    for name, schema in document["components"]["schemas"].items():
        assert schema["description"].endswith("."), name


def test_examples_are_examples(document: Any) -> None:
    whole = {"$defs": document["components"]["schemas"]}
    count = 0

    def valid(value: Any, schema: Any) -> bool:
        local = json.loads(json.dumps(schema).replace("#/components/schemas/", "#/$defs/"))
        defs = json.loads(json.dumps(whole).replace("#/components/schemas/", "#/$defs/"))
        return jsonschema_rs.validator_for({**local, **defs}, validate_formats=True).is_valid(value)

    for where, found in every(document):
        if "/examples/" in where or "/example" in where:
            continue
        for one in found.get("examples", ()) if isinstance(found.get("examples"), list) else ():
            assert valid(one, {key: of for key, of in found.items() if key != "examples"}), (where, one)
            count += 1
        if "example" in found and "schema" in found:
            assert valid(found["example"], found["schema"]), (where, found["example"])
            count += 1
    assert count > 30


@in_memory
async def test_the_bounds_are_the_real_ones(place: Place) -> None:
    """At each bound of each field a value is taken, and one step beyond it is not, and the field is named."""
    async with live(place, role="api") as service:
        shapes = (await service.http.get("/openapi.json")).json()["components"]["schemas"]
        for path, shape, least in (
            ("/v1/functions/send-report/jobs", "EnqueueBody", {}),
            ("/v1/functions/cron", "CronBody", {"schedule": "0 3 * * *", "function": "send-report"}),
        ):
            tried = 0
            for name, field in shapes[shape]["properties"].items():
                for value, taken in edges(field):
                    body = {**least, **({"name": f"entry-{tried}"} if shape == "CronBody" else {}), name: value}
                    answer = await service.ask("POST", path, 201 if taken else 400, json=body)
                    assert taken or name in answer["message"] or "cron expression" in answer["message"], (name, value, answer)
                    tried += 1
            assert tried >= 6
            for name in shapes[shape]["required"]:
                body = {"name": "another", **least}
                body.pop(name)
                assert name in (await service.ask("POST", path, 400, json=body))["message"]


def edges(field: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    for key, beyond in (("minimum", -1), ("maximum", 1)):
        if key in field:
            yield field[key], True
            yield float(field[key]), True
            yield field[key] + beyond, False
    if "maxLength" in field and field.get("format") == "cron":
        yield "0 3 * * *" + " " * (field["maxLength"] - 9), True
        yield "0 3 * * *" + " " * (field["maxLength"] - 8), False
    elif "maxLength" in field:
        yield "a" * field["maxLength"], True
        yield "a" * (field["maxLength"] + 1), False
        yield "", False
    for name in field.get("not", {}).get("enum", ()):
        yield name, False


@in_memory
async def test_the_bounds_of_queries_and_headers_are_the_real_ones(place: Place) -> None:
    async with live(place, role="api") as service:
        described = (await service.http.get("/openapi.json")).json()
        for path in ("/v1/functions/jobs", "/v1/functions/jobs/dlq"):
            for parameter in described["paths"][path]["get"]["parameters"]:
                schema = parameter["schema"]
                for value in schema.get("enum", (schema.get("minimum"), schema.get("maximum"))):
                    await service.ask("GET", path, params={parameter["name"]: value})
                for value in ("none",) if "enum" in schema else (schema["minimum"] - 1, schema["maximum"] + 1, "1.0", "+1", ""):
                    error = await service.ask("GET", path, 400, params={parameter["name"]: value})
                    assert parameter["name"] in error["message"]
        (key,) = (
            one["schema"]
            for one in described["paths"]["/v1/functions/{name}/jobs"]["post"]["parameters"]
            if one["name"] == "Idempotency-Key"
        )
        ask = "/v1/functions/send-report/jobs"
        for value in ("a", "a" * key["maxLength"], "a b~!"):
            assert re.search(key["pattern"], value)
            await service.ask("POST", ask, 201, headers={"Idempotency-Key": value})
            await service.ask("POST", ask, 200, headers={"Idempotency-Key": value})
        for bad in (b"", b"a" * (key["maxLength"] + 1), "ä".encode(), b"\xff", b"a\tb"):
            headers = [(b"idempotency-key", bad), (b"apikey", service.keys["service_role"].encode())]
            response = await service.http.post(ask, headers=headers)
            assert response.status_code == 400 and "Idempotency-Key" in response.text, (bad, response.text)


@pytest.mark.slow
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    """Its four phases and all of its checks, with the key for servers."""
    with served(tmp_path) as service:
        options = ("--max-examples", "20", "-H", f"apikey: {service.keys['service_role']}")
        said = schemathesis(tmp_path, service.url, *options, job=service.dead_letter())
        statuses = answered(service.url)
        assert not {status for counts in statuses.values() for status in counts if status >= 500}, statuses
        for route, wanted in (
            ("/v1/functions/{name}/jobs", {200, 201, 400, 401}),
            ("/v1/functions/jobs/{id}", {200, 404}),
            ("/v1/functions/jobs/{id}/retry", {200, 401}),  # 409 only where the job is not yet dead again
            ("/v1/functions/cron", {200, 201, 400, 409}),
            ("/v1/functions/cron/{name}", {200, 404}),
            ("/v1/functions/{name}/invoke/{path:path}", {200}),
        ):
            assert wanted <= statuses[route], (route, statuses[route], said)  # so that the run went deep
    assert "WARNINGS" not in said, said
    assert "unforeseen" not in service.log.read_text() and "Traceback" not in service.log.read_text()


@pytest.mark.slow
def test_schemathesis_gets_nothing_without_a_key(tmp_path: Path) -> None:
    with served(tmp_path, "--role", "api") as service:
        schemathesis(tmp_path, service.url, "--max-examples", "3", "--phases", "coverage,fuzzing")
        statuses = answered(service.url)
        for route, counts in statuses.items():
            if route.startswith("/v1"):
                assert counts <= {401, 405}, (route, counts)
                assert 401 in counts, route
        listed = httpx2.get(
            f"{service.url}/v1/functions/jobs", headers={"apikey": service.keys["service_role"]}, trust_env=False
        )
        assert listed.json() == {"data": [], "meta": None}


def schemathesis(folder: Path, url: str, *options: str, job: str = "") -> str:
    """What it says of the service; deterministic, and it must find nothing."""
    config = folder / "schemathesis.toml"
    config.write_text(
        'hooks = "tests.functions.fuzz.schemathesis_hooks"\n'
        "request-timeout = 30\n"
        "[[operations]]\n"
        'include-path-regex = "/invoke"\n'
        f'parameters = {{ "path.name" = "{FUNCTION}" }}\n'
        + (f'[[operations]]\ninclude-operation-id = "retry_job"\nparameters = {{ "path.id" = "{job}" }}\n' if job else "")
    )
    command = [*SCHEMATHESIS, "--config-file", str(config), "run", f"{url}/openapi.json", "--checks", "all"]
    command += ["--generation-deterministic", "--no-color", "--continue-on-failure", *options]
    run = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "NO_PROXY": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
        check=False,
    )
    said = run.stdout.decode(errors="replace")
    assert run.returncode == 0, said
    return said


def answered(url: str) -> dict[str, set[int]]:
    """With which statuses the service has answered on each route."""
    found: dict[str, set[int]] = {}
    for line in httpx2.get(f"{url}/metrics", trust_env=False).text.splitlines():
        if line.startswith("treadle_http_requests_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            found.setdefault(labels["route"], set()).add(int(labels["status"]))
    return found


def test_the_cron_expressions_given_to_schemathesis_are_valid() -> None:
    from hypothesis import given, settings

    @settings(max_examples=200, database=None, derandomize=True)
    @given(cron_expressions())
    def check(text: str) -> None:
        assert Cron.with_seconds(text)

    check()


def test_a_document_that_lies_is_caught(document: Any) -> None:
    """The checks above can fail: a document with a hole in it is refused by the official schema."""
    for broken in (
        {**document, "openapi": "3"},
        {key: value for key, value in document.items() if key != "info"},
        {**document, "paths": {"no-slash": {}}},
    ):
        assert not jsonschema_rs.Draft202012Validator(OPENAPI_31).is_valid(broken)
