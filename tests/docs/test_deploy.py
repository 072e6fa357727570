"""The files of the deployment guide: the page has those of `deploy/`, and they work where their programs are (D6, D7)."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from guide import Running, blocks_of, free_port, plain_environment, until
from tests.servers import postgres

from treadle.cli.main import cli

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BLOCKS = blocks_of((ROOT / "docs/how-to/deploy-functions.md").read_text())
UNIT = (DEPLOY / "treadle.service").read_text()
CONTAINER = (DEPLOY / "Containerfile").read_text()
KEYS = {f"TREADLE_{name}": f"a-key-for-the-tests-of-{name.lower()}" for name in ("SERVICE_ROLE_KEY", "ANON_KEY", "ADMIN_KEY")}
KEYS["TREADLE_SIGNING_SECRET"] = "a-secret-for-the-tests-of-the-deployment"
HELLO = "async def handle(request):\n    return {'headers': dict(request.headers), 'read': len(await request.body())}\n"

pytestmark = pytest.mark.timeout(120)


def test_the_page_has_the_files_as_they_are() -> None:
    shown = {block.text for block in BLOCKS}
    files = sorted(DEPLOY.iterdir())
    assert [file.name for file in files] == ["Caddyfile", "Containerfile", "nginx.conf", "treadle.service"]
    assert [file.name for file in files if file.read_text() not in shown] == []


def checked_options(command: list[str]) -> dict[str, object]:
    """What `treadle serve` takes these words for. Raises where it refuses them."""
    assert command[:2] == ["treadle", "serve"]
    serve = cli.get_command(click.Context(cli), "serve")
    assert serve
    return serve.make_context("serve", command[2:]).params


# -- systemd


def of_unit(name: str) -> str:
    [value] = re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)
    return str(value)


def test_the_unit_starts_what_exists_and_waits_longer_than_the_grace() -> None:
    program, *words = shlex.split(of_unit("ExecStart"))
    options = checked_options([Path(program).name, *words])
    grace = options["grace"]
    assert isinstance(grace, float)
    assert int(of_unit("TimeoutStopSec")) >= grace + 20
    assert (of_unit("KillMode"), of_unit("Restart"), of_unit("User")) == ("mixed", "always", "treadle")


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    program = shlex.split(of_unit("ExecStart"))[0]
    unit = tmp_path / "treadle.service"
    unit.write_text(UNIT.replace(program, shutil.which("true") or "/bin/true"))
    ended = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, [line for line in ended.stderr.splitlines() if "treadle" in line]) == (0, [])


# -- the container


def test_the_container_runs_what_exists_as_a_list_and_as_an_ordinary_user() -> None:
    [command] = re.findall(r"^CMD (\[.*\])$", CONTAINER, re.MULTILINE)
    options = checked_options(json.loads(command))
    assert options["host"] == "0.0.0.0"
    [health] = re.findall(r"^ +CMD (\[.*\])$", CONTAINER, re.MULTILINE)
    assert compile(json.loads(health)[2], "health", "exec")
    [user] = re.findall(r"^USER (\d+):\d+$", CONTAINER, re.MULTILINE)
    assert int(user) > 0 and CONTAINER.index("USER ") < CONTAINER.index("VOLUME") < CONTAINER.index('CMD ["treadle')
    [patience] = re.findall(r"--stop-timeout (\d+)", "".join(block.text for block in BLOCKS))
    assert isinstance(options["grace"], float) and int(patience) >= options["grace"] + 20


def test_what_the_container_copies_is_enough_to_build_from(tmp_path: Path) -> None:
    for words in re.findall(r"^COPY (.*)$", CONTAINER, re.MULTILINE):
        *sources, target = words.split()
        for source in sources:
            there = tmp_path / target / Path(source).name if target.endswith("/") else tmp_path / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, there, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, there)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "built")]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert list((tmp_path / "built").glob("treadle-*.whl"))


# -- reverse proxies


@pytest.fixture
def service(tmp_path: Path) -> Iterator[int]:
    """The port of a service with a function `hello`."""
    folder = tmp_path / "functions/hello"
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(HELLO)
    running = Running(["treadle", "serve", "--port", "0"], tmp_path, plain_environment() | KEYS)
    try:
        yield int(running.until(r"http://\S+:(\d+)")[1])
        assert "keys were made" not in "\n".join(running.lines)
    finally:
        running.close()


def ask(
    port: int, method: str, path: str, body: bytes | None = None, tls: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, str]:
    """Status and body of an answer."""
    if tls is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    else:
        connection = http.client.HTTPSConnection("localhost", port, timeout=20, context=tls)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, {"apikey": KEYS["TREADLE_SERVICE_ROLE_KEY"], **sent})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def listens(port: int) -> bool:
    try:
        ask(port, "GET", "/healthz")
    except (ConnectionError, http.client.HTTPException):
        return False
    return True


def check_proxy(port: int, tls: ssl.SSLContext | None = None) -> None:
    """What the guide says of a proxy."""
    assert ask(port, "GET", "/readyz", tls=tls)[0] == 200
    assert ask(port, "GET", "/metrics", tls=tls)[0] == 404
    made_up = {"X_Forwarded_For": "6.6.6.6", "Forwarded": "for=6.6.6.6", "x_treadle_role": "admin"}
    status, text = ask(port, "POST", "/v1/functions/hello/invoke/a%2Fb?c=d", b"x" * 100_000, tls, **made_up)
    assert status == 200
    seen = json.loads(text)
    assert seen["read"] == 100_000 and "6.6.6.6" not in text
    assert (seen["headers"]["x-treadle-role"], seen["headers"]["x-forwarded-for"]) == ("service_role", "127.0.0.1")
    assert ask(port, "POST", "/v1/functions/hello/invoke/%6aobs/1", b"", tls)[0] == 403
    assert ask(port, "JOB", "/v1/functions/hello/invoke/", b"", tls)[0] in (400, 405)
    payload = json.dumps({"payload": "x" * 1_048_570}).encode()
    assert ask(port, "POST", "/v1/functions/hello/jobs", payload, tls, content_type="application/json")[0] == 201
    payload = json.dumps({"payload": "x" * 1_048_575}).encode()
    status, text = ask(port, "POST", "/v1/functions/hello/jobs", payload, tls, content_type="application/json")
    assert (status, json.loads(text)["error"]["code"]) == (413, "payload_too_large")


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here to make a certificate with")
    key, made = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"]
    command += ["-keyout", str(key), "-out", str(made), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if ended.returncode:
        pytest.skip(f"this openssl makes no certificate: {ended.stderr.strip()}")
    return made, key


def test_nginx_takes_its_file_and_passes_requests_on(service: int, tmp_path: Path) -> None:
    if shutil.which("nginx") is None:
        pytest.skip("there is no nginx here")
    made, key = certificate(tmp_path)
    port = free_port()
    text = (DEPLOY / "nginx.conf").read_text().replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    text = text.replace("server 127.0.0.1:8700", f"server 127.0.0.1:{service}")
    text = re.sub(r"(ssl_certificate) .*;", rf"\1 {made};", text)
    text = re.sub(r"(ssl_certificate_key) .*;", rf"\1 {key};", text)
    (tmp_path / "treadle.conf").write_text(text)
    paths = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (tmp_path / "nginx.conf").write_text(
        ("user root;\n" if os.getuid() == 0 else "")  # else it drops to a user who may not enter this folder
        + f"daemon off; master_process off; pid {tmp_path}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {paths} include {tmp_path}/treadle.conf; }}\n"
    )
    command = ["nginx", "-c", str(tmp_path / "nginx.conf"), "-e", "stderr"]
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=60)
    assert tested.returncode == 0 and "[warn]" not in tested.stderr, tested.stderr
    nginx = Running(command, tmp_path, plain_environment())
    try:
        until(lambda: listens(port))
        check_proxy(port, ssl.create_default_context(cafile=str(made)))
        assert nginx.stop() == 0
    finally:
        nginx.close()


def test_caddy_takes_its_file_and_passes_requests_on(service: int, tmp_path: Path) -> None:
    if shutil.which("caddy") is None:
        pytest.skip("there is no caddy here")
    environment = plain_environment() | {
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    tested = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert tested.returncode == 0 and '"level":"warn"' not in tested.stderr, tested.stderr
    port = free_port()
    text = (DEPLOY / "Caddyfile").read_text().replace("functions.example.com {", f"http://127.0.0.1:{port} {{")
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text.replace("127.0.0.1:8700", f"127.0.0.1:{service}"))
    caddy = Running(["caddy", "run", "--adapter", "caddyfile", "--config", "Caddyfile"], tmp_path, environment)
    try:
        until(lambda: listens(port))
        check_proxy(port)
        caddy.stop()
    finally:
        caddy.close()


# -- several processes


def test_the_commands_for_postgres_work_and_print_no_key(tmp_path: Path) -> None:
    [block] = [block for block in BLOCKS if "--role api" in block.text]
    exported, migrate, *starting = (shlex.split(line) for line in block.text.splitlines())
    assert exported[0] == "export" and migrate == ["treadle", "migrate"]
    (tmp_path / "functions/hello").mkdir(parents=True)
    (tmp_path / "functions/hello/main.py").write_text(HELLO)
    database = postgres.shared_server().fresh_database()
    environment = plain_environment() | KEYS | {"TREADLE_STORE": postgres.shared_server().url_of(database)}
    subprocess.run(migrate, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=60)
    running: list[Running] = []
    try:
        for words in starting:
            options = [*words, "--port", "0"] if "api" in words else words
            options = ["127.0.0.1" if word == "0.0.0.0" else word for word in options]
            running.append(Running(options, tmp_path, environment))
        api, worker = running
        port = int(api.until(r"http://\S+:(\d+)")[1])
        worker.until("scheduler and worker")
        status, text = ask(port, "POST", "/v1/functions/hello/jobs", b"{}", content_type="application/json")
        id = json.loads(text)["data"]["id"]
        until(lambda: '"completed"' in ask(port, "GET", f"/v1/functions/jobs/{id}")[1])
        assert status == 201 and ask(port, "GET", "/v1/functions/hello/invoke")[0] == 200
        assert [one.stop() for one in running] == [0, 0]
        assert "keys were made" not in "".join(line for one in running for line in one.lines)
    finally:
        for one in running:
            one.close()
        postgres.shared_server().drop_database(database)
