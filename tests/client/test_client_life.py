"""A client from its making to its closing: settings, threads, processes, loops, and what it does not look at."""

import asyncio
import inspect
import os
import socket
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.client.faces import BLOCKING, FACES, KEY, Face
from tests.client.server import Answer, Received, Server, serving
from tests.client.shapes import JOB, JOB_ID

import treadle.client
from treadle.client import AsyncFunctions, Functions, Unreachable, create_async_client, create_client

MAKERS = [create_client, create_async_client]
URL = "http://127.0.0.1:8700"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREADLE_URL", raising=False)
    monkeypatch.delenv("TREADLE_SERVICE_ROLE_KEY", raising=False)


def test_url_and_key_are_those_of_the_environment(face: Face, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_URL", server.url + "/")
    monkeypatch.setenv("TREADLE_SERVICE_ROLE_KEY", KEY)
    server.script += [Answer(data=[]), Answer(data=[])]
    with face.open(None, None) as opened:
        opened.functions.list_cron_jobs()
    monkeypatch.setenv("TREADLE_URL", "http://other.invalid")
    monkeypatch.setenv("TREADLE_SERVICE_ROLE_KEY", "other")
    with face.open(server.url, "given") as opened:
        opened.functions.list_cron_jobs()
    assert [(one.target, one.headers["apikey"]) for one in server.received] == [
        ("/v1/functions/cron", KEY),
        ("/v1/functions/cron", "given"),
    ]


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_missing_is_named(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"no URL: pass url=, or set TREADLE_URL"):
        make(key="k")
    with pytest.raises(ValueError, match=r"no key: pass key=, or set TREADLE_SERVICE_ROLE_KEY"):
        make(URL)
    monkeypatch.setenv("TREADLE_URL", "")
    with pytest.raises(ValueError, match="no URL"):
        make(key="k")


WRONG_URLS = [
    "127.0.0.1:8700",
    "localhost",
    "ftp://host",
    "http://",
    "http://:80",
    "http://host:port",
    "http://host:0",
    "http://host:99999",
    "http://[::1",
    "http://host/?a=1",
    "http://host?",
    "http://host/#a",
    "http://host/a/../b",
    "http://a b",
    "http://host\n",
    "http://h\u00f6st",
    "http://" + "a" * 64 + ".example",
    "http://a..b",
    7,
]


@pytest.mark.parametrize("url", WRONG_URLS)
@pytest.mark.parametrize("make", MAKERS)
def test_a_url_that_is_none_is_refused(make: Any, url: Any) -> None:
    with pytest.raises(ValueError, match="the client's URL"):
        make(url, KEY)


@pytest.mark.parametrize("make", MAKERS)
def test_a_password_in_a_url_is_refused_and_not_shown(make: Any) -> None:
    with pytest.raises(ValueError, match="no user or password") as raised:
        make("http://user:geheim@host", KEY)
    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize("key", ["geheim\n", "ge heim", "geh\u00e4im", "geheim\x00", 7])
@pytest.mark.parametrize("make", MAKERS)
def test_a_key_that_cannot_be_a_header_is_refused_and_not_shown(make: Any, key: Any) -> None:
    with pytest.raises(ValueError, match="the client's key must be ASCII") as raised:
        make(URL, key)
    assert "heim" not in str(raised.value)


WRONG_OPTIONS: list[dict[str, Any]] = [
    {"timeout": 0},
    {"timeout": -1},
    {"timeout": float("nan")},
    {"timeout": float("inf")},
    {"timeout": None},
    {"timeout": True},
    {"timeout": "10"},
    {"connect_timeout": 0},
    {"retries": -1},
    {"retries": 1.5},
    {"retries": 21},
    {"retries": True},
    {"retries": None},
]


@pytest.mark.parametrize("option", WRONG_OPTIONS, ids=str)
@pytest.mark.parametrize("make", MAKERS)
def test_patience_must_be_possible(make: Any, option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(option))} must be"):
        make(URL, KEY, **option)


def test_a_closed_client_says_that_it_is(face: Face, server: Server) -> None:
    server.script.append(Answer(data=[]))
    with face.open(server.url) as opened:
        opened.functions.list_cron_jobs()
        if face is BLOCKING:
            opened.client.close()
            opened.client.close()
        else:
            opened.functions._finish(opened.client.close())
            opened.functions._finish(opened.client.close())
        server.wait_until_left()
        with pytest.raises(RuntimeError, match="the client is closed; make another"):
            opened.functions.list_cron_jobs()


def test_connections_are_kept(face: Face, server: Server) -> None:
    server.script += [Answer(data=[])] * 5
    with face.open(server.url) as opened:
        for _ in range(5):
            opened.functions.list_cron_jobs()
    assert server.connections == 1


def test_threads_share_a_client() -> None:
    threads, calls = 8, 25
    together = threading.Barrier(threads)

    def respond(received: Received) -> Answer:
        return Answer(data=JOB | {"id": received.target.rpartition("/")[2]})

    with serving(respond) as server, create_client(server.url, KEY) as client, ThreadPoolExecutor(threads) as pool:

        def work(number: int) -> list[str]:
            together.wait(10)
            return [client.functions.get_job(f"{number}-{call}").id for call in range(calls)]

        for number, answered in enumerate(pool.map(work, range(threads))):
            assert answered == [f"{number}-{call}" for call in range(calls)]
        assert len(server.received) == threads * calls
        assert server.connections <= threads


def test_tasks_share_a_client() -> None:
    def respond(received: Received) -> Answer:
        return Answer(data=JOB | {"id": received.target.rpartition("/")[2]})

    async def main(url: str) -> None:
        async with create_async_client(url, KEY) as client:
            jobs = await asyncio.gather(*(client.functions.get_job(str(number)) for number in range(150)))
            assert [job.id for job in jobs] == [str(number) for number in range(150)]

    with serving(respond) as server:
        asyncio.run(main(server.url))


FORKING = """
import os, sys
from treadle.client import create_client
url, key = sys.argv[1:]
with create_client(url, key) as client:
    client.functions.get_job("parent")
    child = os.fork()
    for number in range(10):
        name = f"{'parent' if child else 'child'}-{number}"
        assert client.functions.get_job(name).id == name
    if child:
        assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_uses_connections_of_its_own() -> None:
    def respond(received: Received) -> Answer:
        return Answer(data=JOB | {"id": received.target.rpartition("/")[2]})

    with serving(respond) as server:
        subprocess.run([sys.executable, "-W", "error", "-c", FORKING, server.url, KEY], check=True, timeout=60)
        used = {(one.connection, "child" in one.target) for one in server.received}
    assert len(used) == server.connections == 2


def test_an_async_client_says_that_it_belongs_to_another_loop(server: Server) -> None:
    server.script.append(Answer(data=JOB))
    client = create_async_client(server.url, KEY)
    with asyncio.Runner() as first:
        first.run(client.functions.get_job(JOB_ID))
        with asyncio.Runner() as second, pytest.raises(RuntimeError, match="belongs to another event loop; make one in each"):
            second.run(client.functions.get_job(JOB_ID))
        first.run(client.close())


def test_proxies_and_logins_of_the_environment_are_not_looked_at(
    face: Face, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login user password geheim\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        server.script.append(Answer(data=[]))
        with face.open(server.url) as opened:
            opened.functions.list_cron_jobs()
        assert proxy.connections == 0
    assert "authorization" not in server.received[0].headers


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate and its key in one file, signed by itself for 127.0.0.1."""
    made = tmp_path_factory.mktemp("tls") / "own.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(made), "-out", str(made.with_suffix(".crt"))]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run(["openssl", "req", "-x509", *kind, *files, *subject], check=True, capture_output=True)
    made.write_text(made.read_text() + made.with_suffix(".crt").read_text())
    return made


def test_https_trusts_whom_it_is_told_to_and_nobody_else(
    face: Face, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    with serving(lambda _: Answer(data=JOB | {"payload": "x" * 300_000}), context) as server:
        trusting = ssl.create_default_context(cafile=str(certificate))
        with face.open(server.url, ssl_context=trusting) as opened:
            for _ in range(3):
                assert len(opened.functions.get_job(JOB_ID).payload) == 300_000
        assert len({one.connection for one in server.received}) == 1, "kept under TLS too"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # of the environment, and so not looked at
        with face.open(server.url, retries=0) as opened, pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            opened.functions.enqueue_job("x")
        assert len(server.received) == 3


def test_a_host_may_have_an_address_of_version_6(face: Face) -> None:
    with socket.socket(socket.AF_INET6) as taken:
        try:
            taken.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 here")
        with (
            face.open(f"http://[::1]:{taken.getsockname()[1]}", retries=0) as opened,
            pytest.raises(Unreachable, match=r"refused|failed"),
        ):
            opened.functions.get_job(JOB_ID)


def operations_of(face: type) -> dict[str, Any]:
    return {name: value for name, value in vars(face).items() if not name.startswith("_")}


def test_both_faces_have_the_same_operations_with_the_same_words() -> None:
    blocking, awaited = operations_of(Functions), operations_of(AsyncFunctions)
    assert [*blocking] == [*awaited]
    for name, method in blocking.items():
        assert inspect.signature(method) == inspect.signature(awaited[name]), name
        assert inspect.iscoroutinefunction(awaited[name])
        assert method.__doc__ == awaited[name].__doc__
    ours, theirs = (inspect.signature(make).parameters for make in MAKERS)
    assert ours == theirs


def test_every_public_name_has_a_docstring_and_annotations() -> None:
    assert set(dir(treadle.client)) == set(treadle.client.__all__)
    for name in treadle.client.__all__:
        value = getattr(treadle.client, name)
        if name != "Status":
            assert inspect.getdoc(value), name
        for own, method in vars(value).items() if inspect.isclass(value) else ():
            if inspect.isfunction(method) and not own.startswith("_"):
                assert method.__doc__, f"{name}.{own}"
                assert "return" in method.__annotations__, f"{name}.{own}"
    assert not hasattr(treadle.client, "Tasks")


WITHOUT = """
import sys
sys.modules["httpx2"] = None
from treadle.client import ApiError, Job, verify_signature, wire
try:
    from treadle.client import create_client
except ImportError as error:
    print(error)
"""


def run(code: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout


def test_without_httpx2_it_says_what_to_install_and_the_rest_works() -> None:
    assert run(WITHOUT).strip() == "the client needs httpx2, which is not installed; run: pip install 'treadle[client]'"


@pytest.mark.parametrize("maker", ["create_client", "create_async_client"])
def test_it_loads_no_other_part_of_treadle(maker: str) -> None:
    loaded = run(f"import sys; from treadle.client import {maker}; {maker}('{URL}', 'k'); print(*sys.modules)").split()
    ours = [name for name in loaded if name.startswith("treadle") and not name.startswith("treadle.client")]
    assert ours == ["treadle"]
    assert {"msgspec", "sqlite3", "starlette", "aiohttp"}.isdisjoint(loaded)


def test_the_faces_of_these_tests_are_both() -> None:
    assert [face.name for face in FACES] == ["blocking", "async"]
