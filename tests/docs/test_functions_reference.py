"""What the pages say of the functions service is what the code has, in both directions (D7)."""

from __future__ import annotations

import ast
import dataclasses
import http.client
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from guide import Running, blocks_of, free_port, plain_environment, until

from treadle.client import wire
from treadle.functions.caller.answer import HEAD_LIMIT
from treadle.functions.caller.caller import Caller
from treadle.functions.hosting import keeper
from treadle.functions.http.body import BESIDES, SECONDS
from treadle.functions.http.crons import CRON_NAME, CronBody
from treadle.functions.http.jobs import EnqueueBody
from treadle.functions.http.lifetime import Limits
from treadle.functions.keys import NAMES
from treadle.functions.overrides import MAX_KEY, SHORT_KEY, SHORT_SECRET, VARIABLES
from treadle.functions.profile import LIST_DEFAULT, LIST_MOST, MAX_ATTEMPTS, MAX_DELAY, REQUEUE_MOST
from treadle.functions.settings import SETTINGS
from treadle.functions.signature import HEADER, signature
from treadle.functions.tokens import ALGORITHM, MAX_SUB, MAX_TOKEN

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/treadle/functions"
CODE = {file: file.read_text() for file in sorted(SOURCE.rglob("*.py"))}
JOB_SECRET, JOB_ID, JOB_BODY = "treadle_function_example", "01a2289d-8a5f-715e-83cc-3851bc3615c5", b'{"name":"Ada"}'


def sections(name: str) -> dict[str, str]:
    text = (ROOT / "docs" / name).read_text()
    return dict(re.findall(r"^##+ ([^\n]+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))


def rows(text: str) -> list[list[str]]:
    """The cells of the tables in the text, without the headings."""
    found, before = [], ""
    for line in text.splitlines():
        if line.startswith("|") and before.startswith("|") and not re.match(r"\| *-", line):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
        before = line
    return found


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


API = sections("reference/http-api.md")
SET = sections("reference/settings.md")
ERRORS = sections("reference/errors.md")


# -- routes


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The description that the service gives of itself."""
    folder = tmp_path_factory.mktemp("described")
    service = Running(["treadle", "serve", "--port", "0"], folder, plain_environment())
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(service.until(r"http://\S+:(\d+)")[1]), timeout=20)
        connection.request("GET", "/openapi.json")
        found: dict[str, Any] = json.load(connection.getresponse())
        connection.close()
    finally:
        service.close()
    return found


def test_every_route_is_documented_with_its_key_and_its_status(document: dict[str, Any]) -> None:
    documented = {}
    for route, key, success, _ in rows(API["Routes"]):
        for name in names(route):
            method, _, path = name.rpartition(" ")
            documented[method or "any", path] = (*names(key), *re.findall(r"\d{3}", success))
    found = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            security = operation["security"]
            needs = security[0]["apikey"] if security else []
            statuses = [status for status in operation["responses"] if status.startswith("2")]
            if "/invoke" in path:
                found["any", path] = ()
            else:
                found[method.upper(), path] = (*needs, *sorted(statuses, reverse=True))
    assert documented == found


def test_the_methods_of_direct_calls_are_those_named(document: dict[str, Any]) -> None:
    [line] = [line for line in API["Routes"].splitlines() if '"Any method" means' in line]
    methods = {method.upper() for method in document["paths"]["/v1/functions/{name}/invoke"]}
    assert set(names(line.partition("means")[2])) == methods


def test_every_field_and_parameter_is_documented() -> None:
    def fields(kind: Any) -> list[str]:
        return list(kind.__struct_fields__)

    assert [names(cells[0])[0] for cells in rows(API["A job"])] == [field.name for field in dataclasses.fields(wire.Job)]
    assert [names(cells[0])[0] for cells in rows(API["Enqueue a job"])] == fields(EnqueueBody)
    assert [names(cells[0])[0] for cells in rows(API["Cron"])] == fields(CronBody)
    looking = {names(cells[0])[0]: cells[1:] for cells in rows(API["Look at jobs"])}
    assert looking["limit"] == [str(LIST_DEFAULT), f"1 to {LIST_MOST}"]
    assert names(looking["status"][1]) == list(wire.STATUSES)
    enqueue = {names(cells[0])[0]: cells for cells in rows(API["Enqueue a job"])}
    assert enqueue["delay_secs"][2].startswith(f"0 to {MAX_DELAY:,.0f} ")
    assert enqueue["max_attempts"][2] == f"1 to {MAX_ATTEMPTS}"
    assert f"at most {REQUEUE_MOST:,}" in API["Routes"] and f"while it is {REQUEUE_MOST:,}" in API["Dead letters"]
    assert rows(API["Cron"])[0][1].startswith(f"1 to {CRON_NAME.schema['maxLength']} ")
    for one in (field.name for field in dataclasses.fields(wire.CronJob)):
        assert f"`{one}`" in API["Cron"]


def test_every_error_code_is_documented_with_its_status() -> None:
    documented = {(cells[0], code) for cells in rows(API["Errors"]) for code in names(cells[1])}
    found = set()
    for file, text in CODE.items():
        if "http" in file.parts:
            found |= set(re.findall(r'\b(?:ApiFailure|failure|Refusal)\(\s*(\d{3}),\s*"(\w+)"', text))
    found |= {("401", "unauthorized"), ("503", "store_unavailable"), ("507", "store_full")}  # named by the error's class
    found |= {("503", code) for code in ("store_error", "schema_missing", "schema_too_new", "store_moved")}
    assert documented == found


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    limits, errors = Limits(), {(cells[0], names(cells[1])[0]): cells[2] for cells in rows(API["Errors"])}
    assert f"{limits.head:,} bytes" in errors["431", "head_too_large"]
    assert f"{BESIDES:,} bytes" in errors["413", "payload_too_large"]
    assert f"{SECONDS:g} s" in errors["408", "timeout"] and SECONDS == limits.head_seconds
    assert [cells[1] for cells in rows(API["Connections"])] == [
        f"{limits.head_seconds:g} s, and {limits.head:,} bytes",
        f"{SECONDS:g} s",
        f"{limits.idle:g} s",
        f"{limits.writing:g} s",
    ]
    read = inspect.signature(Caller).parameters["body_limit"].default
    assert f"at most {read:,} bytes" in API["What a function gets"]
    claims = {names(cells[0])[-1]: cells[1] for cells in rows(API["Keys"]) if len(cells) == 2}
    assert names(claims["alg"]) == [ALGORITHM] and f"1 to {MAX_SUB} " in claims["sub"]
    assert f"at most {MAX_TOKEN:,} characters" in API["Keys"]
    for name in NAMES:
        assert f"`{name}`" in API["Keys"] or f"rotate-key {name}`" in API["Keys"], name


# -- settings


def test_every_setting_of_the_service_is_documented_with_its_default() -> None:
    documented = {names(cells[0])[0]: cells[1:] for cells in rows(SET["Of the functions service"])}
    assert [*documented] == [*SETTINGS]
    for name, setting in SETTINGS.items():
        default, bounds, _ = documented[name]
        number = setting.default
        assert default == (number if isinstance(number, str) else f"{int(number):,}"), name
        for figure in re.findall(r"\d[\d,]*", bounds):
            value = int(figure.replace(",", ""))
            if value or not bounds.startswith("more than"):
                setting.checked(value)
            else:
                with pytest.raises(ValueError):
                    setting.checked(value)
            if value > 1:
                with pytest.raises(ValueError):
                    setting.checked(value + 1)


def test_every_variable_that_holds_a_key_is_documented() -> None:
    text = SET["Keys of the functions service"]
    assert [names(cells[0])[0] for cells in rows(text)] == [*VARIABLES.values()]
    assert (
        f"at most {MAX_KEY:,} characters" in text
        and f"fewer than {SHORT_KEY} " in text
        and f"fewer than {SHORT_SECRET}," in text
    )


def test_every_variable_that_a_function_finds_is_documented() -> None:
    given = set(re.findall(r'"([A-Z_]{4,})":', inspect.getsource(keeper))) | {"TREADLE_URL", "TREADLE_SERVICE_ROLE_KEY"}
    read = {names(cells[0])[0] for cells in rows(SET["Variables of functions and of the client"])}
    assert read == given
    everywhere = {name for text in CODE.values() for name in re.findall(r'"(TREADLE_[A-Z_]+)"', text)} - {"TREADLE_"}
    assert everywhere <= read | set(VARIABLES.values())


# -- errors and log messages


def test_every_log_message_of_the_service_is_documented_with_its_level() -> None:
    logged = {}
    for text in CODE.values():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            call = ast.unparse(node.func)
            level = re.fullmatch(r"(?:.*[._])?log(?:ger)?\.(info|warning|error|exception)", call)
            said: list[ast.expr] = node.args[:1] if level else node.args[1:2] if call.endswith("._tell") else []
            for one in said:
                if isinstance(one, ast.Constant):
                    shown = re.sub(r"%[.\d]*[a-z]", "…", str(one.value))
                    logged[shown] = level[1].replace("exception", "error") if level else "warning"
    documented = {names(cells[1])[0]: cells[0] for cells in rows(ERRORS["Log messages of the functions service"])}
    assert documented == logged


def test_the_errors_on_function_jobs_are_those_of_the_code() -> None:
    said = " ".join(re.sub(r'"\s*f?"', "", text) for text in CODE.values())
    for cells in rows(ERRORS["Errors on function jobs"]):
        for piece in re.split(r"…|'|: |\(|\)", names(cells[0])[0]):
            words = piece.strip(" ;,").removeprefix("it ")
            cuts = [(words[:place], words[place:].lstrip()) for place, one in enumerate(words) if one == " "]
            made = words in said or any(left in said and right in said for left, right in cuts)  # of two parts, perhaps
            assert words in ("Function", "") or made, f"{cells[0]}: {words!r}"


# -- the signature


def test_the_job_of_the_page_is_signed_as_it_says() -> None:
    right = signature(JOB_SECRET, JOB_ID, JOB_BODY)
    assert f"{HEADER}: {right}\n" in API["What a function gets"]
    assert f"JOB /jobs/{JOB_ID} HTTP/1.1\n" in API["What a function gets"]
    assert f"content-length: {len(JOB_BODY)}\n" in API["What a function gets"]
    [row] = [cells for cells in rows(ERRORS["Errors on function jobs"]) if "over the limit" in cells[0]]
    assert row[1] == f"{HEAD_LIMIT:,}."


def block(fence: str) -> str:
    [text] = [one.text for one in blocks_of("## The signature\n" + API["The signature"]) if one.fence == fence]
    return text


def test_node_takes_a_genuine_call_and_no_other(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("there is no node here")
    right = signature(JOB_SECRET, JOB_ID, JOB_BODY)
    calls = [(JOB_SECRET, right), ("guessed", right), (JOB_SECRET, right[:-1] + "é"), (JOB_SECRET, "")]
    arguments = [json.dumps([secret, JOB_ID, JOB_BODY.decode(), given]) for secret, given in calls]
    arguments.append('["x", "y", ""]')
    (tmp_path / "check.mjs").write_text(block("js") + "".join(f"console.log(genuine(...{one}))\n" for one in arguments))
    ended = subprocess.run(["node", "check.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.split() == ["true", "false", "false", "false", "false"]


def test_the_shell_says_the_right_signature(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here")
    environment = plain_environment() | {"TREADLE_FUNCTION_SECRET": JOB_SECRET}
    ended = subprocess.run(["sh", "-euc", block("sh")], env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == signature(JOB_SECRET, JOB_ID, JOB_BODY)


def test_go_takes_a_genuine_call_and_no_other(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("there is no go here")
    (tmp_path / "main.go").write_text(block("go"))
    environment = plain_environment() | {"TREADLE_FUNCTION_SECRET": JOB_SECRET, "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    built = subprocess.run(["go", "build", "-o", "function", "main.go"], cwd=tmp_path, env=environment, capture_output=True)
    assert built.returncode == 0, built.stderr
    port = free_port()
    function = Running([str(tmp_path / "function")], tmp_path, environment | {"PORT": str(port)})
    try:
        right = signature(JOB_SECRET, JOB_ID, JOB_BODY)
        assert [asked(port, JOB_ID, right), asked(port, JOB_ID, right[:-1]), asked(port, "1", right)] == [200, 401, 401]
    finally:
        function.close()


def asked(port: int, id: str, given: str) -> int:
    """The status that a function answers to a job call, tried until it listens."""
    found: list[int] = []

    def answers() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            connection.request("JOB", f"/jobs/{id}", JOB_BODY, {HEADER: given, "content-type": "application/json"})
            found.append(connection.getresponse().status)
        except ConnectionRefusedError:
            return False
        finally:
            connection.close()
        return True

    until(answers)
    return found[0]


# -- which servers take JOB

APP = """
import sys
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
"""
PLAIN = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_JOB(self):
        self.send_response(200)
        self.end_headers()
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
AIOHTTP = """
import sys
from aiohttp import web
async def answer(request): return web.Response()
app = web.Application()
app.router.add_route("*", "/{path:.*}", answer)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]))
"""
NODE = """
require('http').createServer((_, answer) => answer.end()).listen(Number(process.argv[2]), '127.0.0.1')
"""
UVICORN = "import uvicorn\nuvicorn.run(app, port=int(sys.argv[1]), http='{}')\n"
# Whether it takes the method, and the program.
SERVERS = {
    "http.server": (True, PLAIN),
    "h11": (True, APP + UVICORN.format("h11")),
    "httptools": (False, APP + UVICORN.format("httptools")),
    "aiohttp": (False, AIOHTTP),
    "Node": (False, NODE),
}


@pytest.mark.parametrize("name", SERVERS)
def test_servers_take_the_method_or_refuse_it_as_the_page_says(name: str, tmp_path: Path) -> None:
    takes, program = SERVERS[name]
    runtime = "node" if name == "Node" else sys.executable
    if shutil.which(runtime) is None:
        pytest.skip(f"there is no {runtime} here")
    assert any(name in cells[0 if takes else 1] for cells in rows(API["Which servers take the method `JOB`"]))
    (tmp_path / "server.js").write_text(program)
    port = free_port()
    server = Running([runtime, "server.js", str(port)], tmp_path, plain_environment())
    try:
        assert asked(port, "1", "") == (200 if takes else 400)
    finally:
        server.close()
