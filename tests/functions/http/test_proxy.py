"""Direct calls through real sockets: what reaches a function, what comes back, and what does not (F3)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import unquote

import pytest
from edges import HOST, Answer, Call, client, endpoint, function, run, serving
from hypothesis import given, settings, strategies as st
from starlette.requests import Request
from starlette.responses import Response

from treadle.functions.http.direct_path import direct_path
from treadle.functions.http.failures import ApiFailure
from treadle.functions.http.forwarded import Forwarded
from treadle.functions.http.proxy import Proxy

PREFIX = "/v1/functions/fn/invoke"


@contextlib.asynccontextmanager
async def proxying(
    url: str,
    *,
    role: str = "anon",
    user_id: str | None = None,
    seconds: float = 10,
    proxy: Proxy | None = None,
    **limits: float,
) -> AsyncIterator[int]:
    """A server that passes everything on to the function at `url`; gives its port."""
    proxy = proxy or Proxy()

    @endpoint
    async def app(request: Request) -> Response:
        path = request.scope["raw_path"].decode("latin-1").removeprefix(PREFIX)
        return await proxy.forward(request, "fn", url, direct_path(path), role, user_id, seconds)

    async with serving(app, **limits) as server:
        try:
            yield server.port
        finally:
            await proxy.close()


def called(
    data: bytes,
    behave: Callable[[Call], Awaitable[None]] | bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    **options: object,
) -> tuple[Answer, list[Call]]:
    """The answer to these bytes by way of the proxy, and the calls that the function got."""

    async def answered(call: Call) -> None:
        await call.body()
        assert isinstance(behave, bytes)
        await call.answer(behave)

    async def main():
        async with (
            function(answered if isinstance(behave, bytes) else behave) as fn,
            proxying(fn.url, **options) as port,
            client(port) as peer,
        ):
            return await peer.ask(data), fn.calls

    return run(main())


def request(method: str = "GET", path: str = "/", headers: bytes = b"", body: bytes | None = None) -> bytes:
    length = b"" if body is None else b"content-length: %d\r\n" % len(body)
    return f"{method} {PREFIX}{path} HTTP/1.1\r\n".encode() + HOST + headers + length + b"\r\n" + (body or b"")


# --- what reaches the function


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("body", [None, b"", b"hello"])
def test_standard_methods_reach_the_function(method: str, body: bytes | None):
    seen = []

    async def behave(call: Call) -> None:
        seen.append(await call.body())
        await call.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n" + (b"" if method == "HEAD" else b"ok"))

    answer, calls = called(request(method, body=body), behave)
    assert (answer.status, answer.header("content-length")) == (200, "2")
    assert (calls[0].method, seen) == (method, [body or b""])


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/a",
        "/a%2Fb/%C3%A9/%zz?x=%20&y=a+b&x=%2f#"[:-1],
        "//a///b//",
        "/./a/.;x=1",
        "/a;b=c/d,e'(f)!$&*+=:@~[|]^`{}\"<>",
        "/a?b?c=/../jobs/1",
        "/jobs",
        "/jobs?x=1",
        "/jobsx/1",
        "/a/jobs/1",
        "/%25",
        "/%E4",
        "/\\a",
    ],
)
def test_the_path_and_the_query_arrive_as_they_were_sent(path: str):
    _, calls = called(request(path=path))
    assert calls[0].target == (path or "/")


def test_a_function_below_a_path_is_called_there():
    async def main():
        async def behave(call: Call) -> None:
            await call.answer(b"HTTP/1.1 204 No Content\r\n\r\n")

        async with function(behave) as fn, proxying(fn.url + "/base/") as port, client(port) as peer:
            assert (await peer.ask(request(path="/a?b"))).status == 204
            assert fn.calls[0].target == "/base/a?b"
            assert fn.calls[0].header("host") == fn.url.removeprefix("http://")

    run(main())


def test_only_what_is_meant_for_it_reaches_the_function():
    sent = (
        b"apikey: secret\r\nApiKey: secret\r\nauthorization: Bearer secret\r\nAuthorization:   bEARER\tsecret\r\n"
        b"x-treadle-role: service_role\r\nX_Treadle_Role: service_role\r\nX-TREADLE_User-Id: root\r\nx.treadle.role: admin\r\n"
        b"x-treadle-signature: sha256=0\r\nx-treadle-anything: 1\r\n"
        b"connection: keep-alive, X-Private, close\r\nx-private: 1\r\nkeep-alive: timeout=5\r\nte: trailers\r\ntrailer: x\r\n"
        b"proxy-authorization: Basic x\r\nproxy-connection: keep-alive\r\nupgrade: h2c\r\nexpect: 100-continue\r\n"
        b"transfer_encoding: chunked\r\ncontent_length: 99\r\n"
        b"cookie: a=1\r\naccept: */*\r\nx-many: 1\r\nx-many: 2\r\nx-utf: \xc3\xa9\r\nx-latin: \xe9\r\n"
        b"x-forwarded-for: 1.2.3.4\r\nauthorization: Basic dTpw\r\ncontent-type: text/plain\r\nuser-agent: test\r\n"
        b"accept-encoding: br\r\n"
    )
    _, calls = called(request("POST", headers=sent, body=b"x"), role="user", user_id="u-1")
    headers = [(name, value) for name, value in calls[0].headers if name != "host"]
    assert headers == [
        ("cookie", "a=1"),
        ("accept", "*/*"),
        ("x-many", "1"),
        ("x-many", "2"),
        ("x-utf", "Ã©"),  # the same bytes, read as Latin-1 here
        ("x-latin", "Ã©"),
        ("x-forwarded-for", "1.2.3.4"),
        ("authorization", "Basic dTpw"),
        ("content-type", "text/plain"),
        ("user-agent", "test"),
        ("accept-encoding", "br"),
        ("x-treadle-role", "user"),
        ("x-treadle-user-id", "u-1"),
        ("content-length", "1"),
    ]


def test_nothing_is_added_for_a_caller_who_sends_nothing():
    _, calls = called(request())
    assert sorted(name for name, _ in calls[0].headers) == ["host", "x-treadle-role"]


@pytest.mark.parametrize("user_id", ["a\r\nx: y", "é", "", " a", "a\x00"])
def test_an_id_that_would_break_the_head_is_refused(user_id: str):
    answer, calls = called(request(), role="user", user_id=user_id)
    assert (answer.status, calls) == (400, [])


def test_a_body_in_chunks_stays_one():
    answer, calls = called(
        request("POST", headers=b"transfer-encoding: chunked\r\n")
        + b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nx-treadle-role: admin\r\n\r\n"
    )
    assert answer.status == 200
    assert calls[0].header("transfer-encoding") == "chunked"
    assert calls[0].header("content-length") is None


# --- what does not

SPELLINGS = [
    "/jobs/1",
    "/jobs/",
    "//jobs/1",
    "///jobs//1",
    "/JOBS/1",
    "/Jobs/1",
    "/%6aobs/1",
    "/%6A%6F%62%73/1",
    "/%256aobs/1",
    "/%25256aobs/1",
    "/jobs%2f1",
    "/jobs%2F1",
    "/jobs%252f1",
    "/%2fjobs/1",
    "/%2f%2fjobs%2f1",
    "/jobs\\1",
    "\\jobs\\1",
    "/jobs%5c1",
    "/jobs%255C1",
    "/./jobs/1",
    "/%2e/jobs/1",
    "/a/../jobs/1",
    "/a/%2e%2e/jobs/1",
    "/a/.%2e/jobs/1",
    "/a/..%2fjobs/1",
    "/a/%252e%252e/jobs/1",
    "/../jobs/1",
    "/jobs/../jobs/1",
    "/jobs/../a",
    "/jobs/./1",
    "/jobs;x=1/1",
    "/jobs;/1",
    "/;x/jobs/1",
    "/a;x/../jobs/1",
    "/a/..;/jobs/1",
    "/jobs%3bx/1",
    "/jobs./1",
    "/jobs%20/1",
    "/%20jobs/1",
    "/jobs%00/1",
    "/%09jobs/1",
    "/%EF%BD%8Aobs/1",  # a wide j
    "/job%C5%BF/1",  # a long s
    "/jobs%EF%BC%8F1",  # a wide slash
    "/jobs/1?x=y",
    "/jobs//",
    "/a/../jobs/",
    "/jobs/.",
    "/jobs/%2e",
]


@pytest.mark.parametrize("path", SPELLINGS)
def test_paths_of_job_calls_are_refused_in_every_spelling(path: str):
    answer, calls = called(request("POST", path, body=b"{}"))
    assert (answer.status, answer.error[0]) == (403, "forbidden")
    assert calls == []


def test_absolute_targets_are_judged_by_their_path():
    for target, status in ((f"http://other{PREFIX}/jobs/1", 403), (f"http://other{PREFIX}/a", 200)):
        answer, calls = called(f"GET {target} HTTP/1.1\r\n".encode() + HOST + b"\r\n")
        assert (answer.status, len(calls)) == (status, int(status == 200))


@pytest.mark.parametrize("path", ["/../a", "/a/..", "/a/%2e%2e/b", "/a/..%5cb", "/%252e%252e/x", "/a;x/..;y/b", "/.%00./a"])
def test_paths_that_climb_are_refused(path: str):
    answer, calls = called(request(path=path))
    assert (answer.status, answer.error[0], calls) == (400, "invalid_request", [])


def test_a_path_that_is_encoded_over_and_over_is_refused_at_little_cost():
    answer, _ = called(request(path="/%" + "25" * 10_000 + "6aobs/1"))
    assert answer.status == 400


def as_a_server_might(path: str, choices: list[int]) -> str:
    """What a lax server makes of a path, by one of many ways."""
    steps: list[Callable[[str], str]] = [
        unquote,
        str.lower,
        lambda text: text.replace("\\", "/"),
        lambda text: "/".join(part.split(";")[0] for part in text.split("/")),
        lambda text: "/".join(part for index, part in enumerate(text.split("/")) if part not in ("", ".") or index == 0),
        lambda text: "/".join(part.strip(" \t\0") for part in text.split("/")),
    ]
    for choice in choices:
        path = steps[choice](path)
    return path


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.sampled_from(["/", "jobs", "JOBS", "job", "s", "%2f", "%5c", "\\", ".", "%2e", ";", "a", "%6a", "%25", "2f", "%00"]),
        max_size=8,
    ),
    st.lists(st.integers(0, 5), max_size=5),
)
def test_no_reading_of_a_path_that_passes_is_that_of_a_job(parts: list[str], choices: list[int]):
    path = "/" + "".join(parts)
    try:
        direct_path(path)
    except ApiFailure as error:
        assert error.status in (400, 403)
    else:
        assert not as_a_server_might(path, choices).startswith("/jobs/")


@pytest.mark.parametrize("method", ["JOB", "TRACE", "CONNECT", "PROPFIND"])
def test_other_methods_are_405(method: str):
    answer, calls = called(request(method))
    assert (answer.status, answer.error[0], calls) == (405, "method_not_allowed", [])
    assert "POST" in (answer.header("allow") or "")


def test_a_websocket_is_refused():
    answer, calls = called(request(headers=b"connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"))
    assert (answer.status, answer.error[0], calls) == (501, "not_implemented", [])


# --- what comes back


@pytest.mark.parametrize("status", [200, 201, 299, 302, 304, 400, 404, 429, 500, 503, 599])
def test_answers_pass_as_they_are(status: int):
    body = b"" if status == 304 else b"body"
    head = f"HTTP/1.1 {status} Whatever\r\nLocation: /elsewhere\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2; Path=/\r\n".encode()
    more = b"X-Latin: \xe9\r\nServer: fn\r\nDate: then\r\nContent-Length: 4\r\n\r\n"
    answer, calls = called(request(headers=b"cookie: c=3\r\n"), head + more + body)
    assert (answer.status, answer.body, len(calls)) == (status, body, 1)
    assert answer.headers == [
        ("location", "/elsewhere"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2; Path=/"),
        ("x-latin", "é"),
        ("server", "fn"),
        ("date", "then"),
        ("content-length", "4"),
    ]


def test_what_is_between_the_function_and_us_stays_there():
    head = b"HTTP/1.1 200 OK\r\nConnection: x-private, close\r\nX-Private: 1\r\nKeep-Alive: 5\r\n"
    answer, _ = called(request(), head + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nx-trailer: 1\r\n\r\n")
    assert answer.body == b"ab"
    assert [name for name, _ in answer.headers] == ["date", "transfer-encoding"]


def test_a_compressed_body_stays_compressed():
    body = gzip.compress(b"hello" * 100)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
    answer, _ = called(request(), head + body)
    assert (answer.body, answer.header("content-encoding")) == (body, "gzip")


def test_head_gets_the_length_alone():
    answer, _ = called(request("HEAD"), b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n")
    assert (answer.header("content-length"), answer.body) == ("1234", b"")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_body_that_ends_with_the_connection_passes(version: str):
    answer, _ = called(request(), f"HTTP/{version} 200 OK\r\n\r\nall of it".encode())
    assert answer.body == b"all of it"


def test_interim_answers_are_passed_over():
    early = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    assert called(request(), early)[0].status == 200


def test_connections_to_functions_are_used_again():
    async def main():
        made = 0

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal made
            made += 1
            with contextlib.suppress(asyncio.IncompleteReadError):
                while True:
                    await reader.readuntil(b"\r\n\r\n")
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with proxying(url) as port, client(port) as peer:
                for _ in range(5):
                    assert (await peer.ask(request())).status == 200
                assert made == 1

    run(main())


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
def test_a_body_is_sent_to_a_function_once(method: str):
    """Where a kept connection ends instead of an answer, the body is gone, and must not be made up for by an empty one."""

    async def main():
        bodies, connections = [], 0

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            for answer in (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""):
                head = await reader.readuntil(b"\r\n\r\n")
                bodies.append(await reader.readexactly(int(re.search(rb"content-length: (\d+)", head.lower())[1])))
                writer.write(answer)
            writer.close()

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with proxying(url) as port, client(port) as peer:
                first, second = [await peer.ask(request(method, body=body)) for body in (b"first", b"second")]
        assert (first.status, second.status) == (200, 502)
        assert second.error[1] == "Function 'fn' closed the connection before it had answered"
        assert (bodies, connections) == ([b"first", b"second"], 1)

    run(main())


# --- failures


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def unreachable(url: str) -> Answer:
    async def main():
        async with proxying(url) as port, client(port) as peer:
            return await peer.ask(request("POST", body=b"x"))

    return run(main())


def test_a_function_that_cannot_be_reached_is_502():
    answer = unreachable(f"http://127.0.0.1:{free_port()}")
    assert (answer.status, answer.error[0]) == (502, "bad_gateway")
    assert answer.error[1].startswith("Function 'fn' cannot be reached")
    assert "127.0.0.1" not in answer.error[1]
    assert "host is unknown" in unreachable("http://no-such-host.invalid").error[1]


def test_a_function_without_tls_is_502():
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def main():
        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with proxying(url) as port, client(port) as peer:
                return await peer.ask(request())

    assert run(main()).error == ("bad_gateway", "Function 'fn' cannot be reached: no TLS connection comes about")


UNUSABLE = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\ncontent-",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "a change of protocol": b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    "a length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "another coding": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
    "a length that is none": b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\nabcd",
    "a control in a header": b"HTTP/1.1 200 OK\r\nx: a\x01b\r\ncontent-length: 0\r\n\r\n",
    "a deletion in a header": b"HTTP/1.1 200 OK\r\nx: a\x7fb\r\ncontent-length: 0\r\n\r\n",
    "a status below all": b"HTTP/1.1 099 What\r\ncontent-length: 0\r\n\r\n",
    "a huge header": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("data", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_answer_that_cannot_be_used_is_502(data: bytes):
    answer, _ = called(request("POST", body=b"x"), data)
    assert (answer.status, answer.error[0]) == (502, "bad_gateway")
    assert answer.error[1].startswith("Function 'fn' ")


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\ncontent-"])
def test_a_function_that_does_not_answer_in_time_is_504(start: bytes):
    async def main():
        ended = asyncio.Event()

        async def behave(call: Call) -> None:
            await call.answer(start)
            assert await call.reader.read() == b""
            ended.set()

        async with function(behave) as fn, proxying(fn.url, seconds=0.2) as port, client(port) as peer:
            answer = await peer.ask(request())
            assert (answer.status, answer.error) == (504, ("timeout", "Function 'fn' has not answered within 0.2 s"))
            await ended.wait()

    run(main())


def test_a_body_that_does_not_come_in_time_is_408():
    async def main():
        async def behave(call: Call) -> None:
            await call.body()

        async with function(behave) as fn, proxying(fn.url, seconds=0.2) as port, client(port) as peer:
            await peer.send(request("POST", headers=b"content-length: 100\r\n") + b"abc")
            answer = await peer.answer()
            assert (answer.status, answer.error[0], answer.header("connection")) == (408, "timeout", "close")

    run(main())


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nnoise\r\n",
    ],
    ids=["length", "chunks", "malformed"],
)
def test_an_answer_that_breaks_off_is_cut(data: bytes):
    async def main():
        async def behave(call: Call) -> None:
            await call.answer(data)

        async with function(behave) as fn, proxying(fn.url) as port, client(port) as peer:
            await peer.send(request())
            try:
                answer = await peer.answer()
            except (asyncio.IncompleteReadError, ValueError, ConnectionError):
                return
            assert answer.status == 502  # it broke off before its head was passed on

    run(main())


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_answer_that_does_not_end_in_time_is_cut(version: str, caplog: pytest.LogCaptureFixture):
    async def main():
        async def behave(call: Call) -> None:
            await call.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
            await call.reader.read()

        async with function(behave) as fn, proxying(fn.url, seconds=0.3) as port, client(port) as peer:
            await peer.send(request().replace(b"HTTP/1.1", f"HTTP/{version}".encode()))
            assert (await peer.head())[0] == 200
            if version == "1.1":
                assert await peer.ended() == b"3\r\nabc\r\n"
            else:  # where the end of the connection would be that of the body, it is reset
                with pytest.raises(ConnectionResetError):
                    while await peer.reader.read(100):
                        pass

    run(main())
    assert "not whole in time" in caplog.text


# --- as it flows


def test_an_answer_reaches_the_caller_as_it_comes():
    async def main():
        go = asyncio.Event()

        async def behave(call: Call) -> None:
            await call.answer(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            for number in range(3):
                await go.wait()
                go.clear()
                await call.answer(b"data: %d\n\n" % number)

        async with function(behave) as fn, proxying(fn.url) as port, client(port) as peer:
            await peer.send(request())
            assert (await peer.head())[0] == 200
            go.set()
            number = 0
            async for piece in peer.chunks():
                assert piece == b"data: %d\n\n" % number
                number += 1
                go.set()
            assert number == 3

    run(main())


def test_a_request_reaches_the_function_as_it_comes_and_may_be_answered_before_it_ends():
    async def main():
        async def behave(call: Call) -> None:
            assert await call.reader.readexactly(3) == b"abc"
            await call.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
            assert await call.reader.readexactly(3) == b"def"
            await call.answer(b"1\r\ny\r\n0\r\n\r\n")

        async with function(behave) as fn, proxying(fn.url) as port, client(port) as peer:
            await peer.send(request("POST", headers=b"content-length: 6\r\n") + b"abc")
            assert (await peer.head())[0] == 200
            pieces = peer.chunks()
            assert await anext(pieces) == b"x"
            await peer.send(b"def")
            assert await anext(pieces) == b"y"
            assert [piece async for piece in pieces] == []

    run(main())


def test_no_side_sends_more_than_the_other_takes():
    size = 100_000_000

    async def main():
        loop = asyncio.get_running_loop()
        given = 0
        go = asyncio.Event()

        async def behave(call: Call) -> None:
            nonlocal given
            if call.method == "POST":
                call.reader._transport.pause_reading()  # type: ignore[attr-defined]  # a function that is busy
                await go.wait()
                return
            await call.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
            while given < size:
                await call.answer(b"x" * 100_000)
                given += 100_000

        async with function(behave) as fn, proxying(fn.url) as port:
            async with client(port) as peer:
                peer.reader._transport.pause_reading()  # type: ignore[attr-defined]  # a caller that is busy
                await peer.send(request())
                assert await stands(lambda: given) < 30_000_000
            async with client(port) as peer:
                sent = 0
                await peer.send(request("POST", headers=b"content-length: %d\r\n" % size))

                async def send():
                    nonlocal sent
                    while sent < size:
                        await peer.send(b"x" * 100_000)
                        sent += 100_000

                sending = loop.create_task(send())
                assert await stands(lambda: sent) < 30_000_000
                sending.cancel()
                go.set()

    async def stands(count: Callable[[], int]) -> int:
        """What it has come to once it has not grown for a while."""
        tick = asyncio.Event()
        before = -1
        while count() == 0 or count() != before:
            before = count()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.3):
                    await tick.wait()
        return before

    run(main())


def test_large_bodies_arrive_whole_both_ways():
    body = bytes(index % 251 for index in range(3_000_000))

    async def behave(call: Call) -> None:
        got = await call.body()
        await call.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(got) + got)

    assert called(request("PUT", body=body), behave)[0].body == body


def test_an_early_refusal_of_the_function_reaches_a_caller_in_the_midst_of_its_upload():
    async def main():
        async def behave(call: Call) -> None:
            await call.answer(b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno")
            call.writer.write_eof()
            while await call.reader.read(100_000):
                pass

        async with function(behave) as fn, proxying(fn.url) as port, client(port) as peer:
            await peer.send(request("POST", headers=b"content-length: 1000000000\r\n"))
            answering = asyncio.create_task(peer.answer())
            while not answering.done():
                await peer.send(b"x" * 100_000)
                await asyncio.sleep(0)
            answer = await answering
            assert (answer.status, answer.body, answer.header("connection")) == (413, b"no", "close")
            peer.writer.write_eof()
            assert await peer.ended() == b""

    run(main())


def test_a_caller_that_asks_first_is_told_to_go_on():
    async def main():
        async def behave(call: Call) -> None:
            body = await call.body()
            await call.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

        async with function(behave) as fn, proxying(fn.url) as port, client(port) as peer:
            await peer.send(request("POST", headers=b"content-length: 3\r\nexpect: 100-continue\r\n"))
            assert await peer.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert (await peer.ask(b"abc")).body == b"abc"

    run(main())


# --- a caller that goes


@pytest.mark.parametrize("moment", ["before the head", "in the body", "in the upload"])
def test_the_call_ends_when_the_caller_goes(moment: str, caplog: pytest.LogCaptureFixture):
    async def main():
        begun, ended = asyncio.Event(), asyncio.Event()

        async def behave(call: Call) -> None:
            if moment == "in the body":
                await call.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
            begun.set()
            await call.reader.read(1 if moment == "in the upload" else -1)
            with contextlib.suppress(ConnectionError):
                await call.reader.read()
            ended.set()

        async with function(behave) as fn, proxying(fn.url, linger=0.05) as port:
            async with client(port) as peer:
                upload = moment == "in the upload"
                await peer.send(request("POST", headers=b"content-length: 10\r\n") + b"abc" if upload else request())
                if moment == "in the body":
                    await peer.head()
                await begun.wait()
            await ended.wait()

    run(main())
    assert not caplog.records


def test_a_stop_of_the_server_ends_the_calls():
    async def main():
        begun, ended = asyncio.Event(), asyncio.Event()

        async def behave(call: Call) -> None:
            begun.set()
            await call.reader.read()
            ended.set()

        async with function(behave) as fn:
            proxy = Proxy()

            @endpoint
            async def app(req: Request) -> Response:
                return await proxy.forward(req, "fn", fn.url, "/", "anon", None, 10)

            async with serving(app) as server, client(server.port) as peer:
                await peer.send(request())
                await begun.wait()
                await server.stop(0)
                await ended.wait()
                assert await peer.ended() == b""
            await proxy.close()
            await proxy.close()

    run(main())


def test_calls_whose_callers_went_leave_nothing_behind():
    async def main():
        async def behave(call: Call) -> None:
            await call.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
            await call.reader.read()
            ended.set()

        async with function(behave) as fn, proxying(fn.url, linger=0.05) as port:
            for _ in range(10):
                ended = asyncio.Event()
                async with client(port) as peer:
                    await peer.send(request())
                    await peer.head()
                await ended.wait()

    run(main())
    gc.collect()
    assert [kept for kept in gc.get_objects() if isinstance(kept, Forwarded)] == []
