"""The server at its edges: odd requests, slow and vanishing clients, starting, stopping (F14)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import signal
import socket

import pytest
from edges import HOST, client, endpoint, run, serving
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from treadle.core.errors import (
    Conflict,
    InvalidArgument,
    NotFound,
    SchemaMissing,
    StoreFull,
    StoreMoved,
    StoreUnavailable,
)
from treadle.functions.http.envelope import failure, success
from treadle.functions.http.failures import ApiFailure, answer_to
from treadle.functions.http.listening import CannotListen
from treadle.functions.http.server import Server
from treadle.functions.identity import Unauthorized


@endpoint
async def ok(request: Request) -> Response:
    return success({"method": request.method, "path": request.scope["raw_path"].decode("latin-1")})


@endpoint
async def echo(request: Request) -> Response:
    return Response(await request.body())


def get(path: str = "/", version: str = "1.1", headers: bytes = HOST) -> bytes:
    return f"GET {path} HTTP/{version}\r\n".encode() + headers + b"\r\n"


def asked(data: bytes, app: object = ok, **limits: float):
    """The answer to these bytes, and what came behind it until the server closed."""

    async def main():
        async with serving(app, **limits) as server, client(server.port) as peer:
            answer = await peer.ask(data)
            if answer.header("connection") == "close":
                assert await peer.ended() == b""
            return answer

    return run(main())


# --- plain requests


def test_requests_follow_one_another_on_a_connection():
    async def main():
        async with serving(ok) as server, client(server.port) as peer:
            for number in range(3):
                answer = await peer.ask(get(f"/{number}"))
                assert (answer.status, answer.header("connection")) == (200, None)
                assert json.loads(answer.body) == {"data": {"method": "GET", "path": f"/{number}"}, "meta": None}
                assert answer.header("content-type") == "application/json"
                assert answer.header("date")
                assert answer.header("server") is None

    run(main())


def test_requests_sent_at_once_are_answered_in_their_order():
    async def main():
        async with serving(ok) as server, client(server.port) as peer:
            await peer.send(b"".join(get(f"/{number}") for number in range(50)))
            for number in range(50):
                assert json.loads((await peer.answer()).body)["data"]["path"] == f"/{number}"

    run(main())


def test_head_gets_the_length_and_no_body():
    async def main():
        async with serving(ok) as server, client(server.port) as peer:
            answer = await peer.ask(b"HEAD /x HTTP/1.1\r\n" + HOST + b"\r\n")
            assert int(answer.header("content-length") or 0) > 10
            assert (await peer.ask(get("/next"))).status == 200

    run(main())


@pytest.mark.parametrize("size", [0, 1, 70_000, 1_000_000])
def test_bodies_arrive_whole_in_both_directions(size: int):
    body = bytes(index % 251 for index in range(size))
    answer = asked(b"POST / HTTP/1.1\r\n" + HOST + b"content-length: %d\r\n\r\n" % size + body, echo)
    assert answer.body == body


def test_a_body_in_chunks_arrives_whole_and_its_trailers_are_dropped():
    seen = []

    @endpoint
    async def app(request: Request) -> Response:
        body = await request.body()
        seen.extend(name for name, _ in request.scope["headers"])
        return Response(body)

    head = b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n"
    answer = asked(head + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nx-treadle-role: admin\r\n\r\n", app)
    assert answer.body == b"abcde"
    assert seen == [b"host", b"transfer-encoding"]


def test_a_stream_without_a_length_is_sent_in_chunks_and_to_http_1_0_until_the_end():
    @endpoint
    async def app(request: Request) -> Response:
        async def pieces():
            for piece in ("a", "", "bc"):
                yield piece

        return StreamingResponse(pieces())

    answer = asked(get(), app)
    assert (answer.header("transfer-encoding"), answer.body) == ("chunked", b"abc")
    answer = asked(get(version="1.0"), app)
    assert (answer.header("transfer-encoding"), answer.header("connection"), answer.body) == (None, "close", b"abc")


def test_the_head_of_a_stream_leaves_before_its_body_is_there():
    async def main():
        go = asyncio.Event()

        @endpoint
        async def app(request: Request) -> Response:
            async def pieces():
                await go.wait()
                yield "late"

            return StreamingResponse(pieces())

        async with serving(app) as server, client(server.port) as peer:
            await peer.send(get())
            assert (await peer.head())[0] == 200
            go.set()
            assert [piece async for piece in peer.chunks()] == [b"late"]

    run(main())


@pytest.mark.parametrize("status", [204, 304])
def test_answers_without_a_body_leave_the_connection_usable(status: int):
    @endpoint
    async def app(request: Request) -> Response:
        return Response(status_code=status, headers={"etag": '"x"', **({"content-length": "5"} if status == 304 else {})})

    async def main():
        async with serving(app) as server, client(server.port) as peer:
            for _ in range(2):
                answer = await peer.ask(get())
                assert answer.status == status
                assert answer.header("content-length") == ("5" if status == 304 else None)

    run(main())


@pytest.mark.parametrize(
    ("target", "path"),
    [("/a%2Fb//c/../d;e?q=%20", "/a%2Fb//c/../d;e"), ("http://other/a", "/a"), ("http://other", "/"), ("*", "*")],
)
def test_the_path_is_given_as_it_was_sent(target: str, path: str):
    answer = asked(f"OPTIONS {target} HTTP/1.1\r\n".encode() + HOST + b"\r\n")
    assert json.loads(answer.body)["data"]["path"] == path


# --- requests that are refused before the application sees them


@pytest.mark.parametrize("method", ["JOB", "FOO", "get", "GETS", "X-Y", "CONNECT"])
def test_unknown_methods_are_405(method: str):
    target = "here:80" if method == "CONNECT" else "/v1/functions/x/invoke/"
    answer = asked(f"{method} {target} HTTP/1.1\r\n".encode() + HOST + b"content-length: 2\r\n\r\n{}")
    assert (answer.status, answer.error[0]) == (405, "method_not_allowed")
    assert method in answer.error[1]
    assert "POST" in (answer.header("allow") or "")
    assert answer.header("connection") == "close"


BROKEN = {
    "noise": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "http/0.9": b"GET /\r\n\r\n",
    "http/3": b"GET / HTTP/3.0\r\n" + HOST + b"\r\n",
    "line feeds alone": b"GET / HTTP/1.1\nhost: x\n\n",
    "a folded header": b"GET / HTTP/1.1\r\n" + HOST + b"x: a\r\n b\r\n\r\n",
    "a space before the colon": b"GET / HTTP/1.1\r\n" + HOST + b"x : a\r\n\r\n",
    "no name": b"GET / HTTP/1.1\r\n" + HOST + b": a\r\n\r\n",
    "a NUL": b"GET / HTTP/1.1\r\n" + HOST + b"x: a\0b\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "a fragment": b"GET /#x HTTP/1.1\r\n" + HOST + b"\r\n",
    "no path": b"GET x HTTP/1.1\r\n" + HOST + b"\r\n",
    "a path that is not ASCII": "GET /é HTTP/1.1\r\n".encode() + HOST + b"\r\n",
    "another scheme": b"GET ftp://x/ HTTP/1.1\r\n" + HOST + b"\r\n",
    "a length and chunks": b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 5\r\ncontent-length: 6\r\n\r\nabcde",
    "the same length twice": b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 5\r\ncontent-length: 5\r\n\r\nabcde",
    "a list of lengths": b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 5, 5\r\n\r\nabcde",
    "a signed length": b"POST / HTTP/1.1\r\n" + HOST + b"content-length: +5\r\n\r\nabcde",
    "a huge length": b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 99999999999999999999\r\n\r\n",
    "chunked twice": b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunks in http/1.0": b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a size in hex notation": b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    "a chunk that is longer than it says": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"transfer-encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_request_is_400_in_the_envelope(data: bytes):
    answer = asked(data, echo)
    assert (answer.status, answer.error[0]) == (400, "invalid_request")
    assert answer.header("connection") == "close"


@pytest.mark.parametrize("coding", ["gzip, chunked", "xchunked"])
def test_another_transfer_encoding_than_chunked_is_501(coding: str):
    answer = asked(b"POST / HTTP/1.1\r\n" + HOST + f"transfer-encoding: {coding}\r\n\r\n0\r\n\r\n".encode())
    assert (answer.status, answer.error[0]) == (501, "not_implemented")


def test_a_refusal_comes_after_the_answers_before_it():
    async def main():
        async with serving(ok) as server, client(server.port) as peer:
            await peer.send(get("/1") + get("/2") + b"JOB / HTTP/1.1\r\n\r\n" + get("/3"))
            assert [json.loads((await peer.answer()).body)["data"]["path"] for _ in range(2)] == ["/1", "/2"]
            assert (await peer.answer()).status == 400  # which of its bytes are the method, the parser does not say
            assert await peer.ended() == b""

    run(main())


@pytest.mark.parametrize("filler", [b"x: " + b"a" * 5000 + b"\r\n", b"x: a\r\n" * 1000], ids=["one", "many"])
def test_a_head_that_is_too_large_is_431(filler: bytes):
    answer = asked(get(headers=HOST + filler), head=4000)
    assert (answer.status, answer.error[0]) == (431, "head_too_large")


CHUNKED = b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "status"),
    [(b"GET / HTTP/1.1\r\nx: ", 431), (CHUNKED + b"1;", 400), (CHUNKED + b"0\r\nx: ", 400)],
    ids=["head", "extension", "trailer"],
)
def test_what_has_no_end_is_ended(start: bytes, status: int):
    async def main():
        async with serving(echo, head=4000) as server, client(server.port) as peer:
            await peer.send(start)
            answering = asyncio.create_task(peer.answer())
            while not answering.done():
                await peer.send(b"a" * 500)
                await asyncio.sleep(0)
            assert (await answering).status == status

    run(main())


@pytest.mark.parametrize("kind", ["websocket", "h2c"])
def test_an_upgrade_is_passed_over_and_its_body_read(kind: str):
    async def main():
        head = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: %b\r\nhttp2-settings: AAA\r\n" % kind.encode()
        async with serving(echo) as server, client(server.port) as peer:
            assert (await peer.ask(get(headers=HOST + head))).status == 200
            answer = await peer.ask(b"POST / HTTP/1.1\r\n" + HOST + head + b"content-length: 5\r\n\r\nhello")
            assert answer.body == b"hello"
            await peer.send(b"POST / HTTP/1.1\r\n" + HOST + head + b"transfer-encoding: chunked\r\n\r\n")
            answer = await peer.ask(b"3\r\nabc\r\n0\r\n\r\n")
            assert answer.body == b"abc"
            await peer.send(b"POST / HTTP/1.1\r\n" + HOST + head + b"content-length: 1\r\n\r\nx" + get("/behind"))
            assert (await peer.answer()).body == b"x"
            assert (await peer.answer()).status == 200

    run(main())


# --- time


def test_a_head_that_does_not_come_whole_is_ended_in_time():
    async def main():
        async with serving(ok, head_seconds=0.2, idle=0.2) as server:
            async with client(server.port) as silent:
                assert await silent.ended() == b""
            async with client(server.port) as slow:
                answer = await slow.ask(b"GET / HTTP/1.1\r\nho")
                assert (answer.status, answer.error[0]) == (408, "timeout")
                assert await slow.ended() == b""
            async with client(server.port) as second:
                assert (await second.ask(get())).status == 200
                assert (await second.ask(b"GET / HTTP/1.1\r\n")).status == 408

    run(main())


def test_an_idle_connection_is_closed():
    async def main():
        async with serving(ok, idle=0.1) as server, client(server.port) as peer:
            assert (await peer.ask(get())).status == 200
            assert await peer.ended() == b""

    run(main())


def test_a_client_that_reads_nothing_is_given_up():
    async def main():
        over = asyncio.Event()

        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while not over.is_set():
                await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
                if server._state.empty.is_set():
                    over.set()

        async with serving(app, writing=0.2) as server, client(server.port) as peer:
            peer.reader._transport.pause_reading()  # type: ignore[attr-defined]  # what a stuck client does
            await peer.send(get())
            await over.wait()

    run(main())


# --- bodies that nobody reads


@pytest.mark.parametrize("expect", [False, True])
def test_an_early_refusal_reaches_a_client_in_the_midst_of_its_upload(expect: bool):
    @endpoint
    async def app(request: Request) -> Response:
        return failure(413, "payload_too_large", "no")

    async def main():
        async with serving(app) as server, client(server.port) as peer:
            head = b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 50000000\r\n" + b"expect: 100-continue\r\n" * expect
            await peer.send(head + b"\r\n")
            if not expect:
                for _ in range(50):  # a client that does not look before it has sent all
                    await peer.send(b"x" * 1_000_000)
            answer = await peer.answer()
            assert (answer.status, answer.header("connection")) == (413, "close")
            assert await peer.ended() == b""

    run(main())


def test_a_client_that_sends_without_end_is_left():
    @endpoint
    async def app(request: Request) -> Response:
        return failure(413, "payload_too_large", "no")

    async def main():
        async with serving(app, linger=60, thrown_away=100_000) as server:
            _reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 50000000\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                while not server._state.empty.is_set():
                    writer.write(b"x" * 100_000)
                    await writer.drain()
            writer.close()

    run(main())


def test_a_lingering_connection_ends_in_time():
    @endpoint
    async def app(request: Request) -> Response:
        return failure(413, "payload_too_large", "no")

    async def main():
        async with serving(app, linger=0.2) as server, client(server.port) as peer:
            answer = await peer.ask(b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 50000000\r\n\r\n")
            assert answer.status == 413
            await server._state.empty.wait()

    run(main())


def test_a_small_body_that_nobody_reads_is_thrown_away_and_the_connection_kept():
    async def main():
        async with serving(ok) as server, client(server.port) as peer:
            answer = await peer.ask(b"POST /a HTTP/1.1\r\n" + HOST + b"content-length: 3000\r\n\r\n")
            assert answer.header("connection") is None
            await peer.send(b"GET /no HTTP/1.1\r\n\r\n" + b"y" * 2980)
            assert json.loads((await peer.ask(get("/b"))).body)["data"]["path"] == "/b"

    run(main())


def test_continue_is_said_when_the_body_is_wanted():
    async def main():
        async with serving(echo) as server, client(server.port) as peer:
            await peer.send(b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 3\r\nexpect: 100-continue\r\n\r\n")
            assert await peer.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert (await peer.ask(b"abc")).body == b"abc"

    run(main())


# --- answers that fail


def test_an_application_that_fails_gives_500_and_a_log_entry(caplog: pytest.LogCaptureFixture):
    async def app(scope, receive, send):
        raise ZeroDivisionError("secret")

    answer = asked(get(), app)
    assert (answer.status, answer.error[0]) == (500, "internal")
    assert b"secret" not in answer.body
    assert "ZeroDivisionError: secret" in caplog.text


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_answer_that_breaks_off_is_noticed(version: str, caplog: pytest.LogCaptureFixture):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ZeroDivisionError

    async def main():
        async with serving(app) as server, client(server.port) as peer:
            await peer.send(get(version=version))
            if version == "1.1":
                with pytest.raises((ValueError, asyncio.IncompleteReadError)):
                    await peer.answer()
            else:
                await peer.ended()

    run(main())
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("pieces", [[b"abc"], [b"abcd", b"ef"]])
def test_an_answer_of_another_length_than_it_says_is_cut(pieces: list[bytes], caplog: pytest.LogCaptureFixture):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": piece != pieces[-1]})

    async def main():
        async with serving(app) as server, client(server.port) as peer:
            await peer.send(get())
            assert (await peer.head())[0] == 200
            assert len(await peer.ended()) < 5

    run(main())
    assert "content-length" in caplog.text


def test_a_header_that_would_split_the_answer_is_not_sent(caplog: pytest.LogCaptureFixture):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"a\r\nb: c")]})

    assert asked(get(), app).status == 500
    assert "cannot be sent" in caplog.text


@pytest.mark.parametrize("pipelined", [False, True])
def test_a_client_that_goes_is_noticed_by_who_waits_for_it(pipelined: bool, caplog: pytest.LogCaptureFixture):
    async def main():
        waiting, noticed = asyncio.Event(), asyncio.Event()

        async def app(scope, receive, send):
            while (await receive())["type"] != "http.disconnect":
                waiting.set()
            noticed.set()

        async with serving(app, linger=0.1) as server:
            async with client(server.port) as peer:
                await peer.send(get() * (1 + pipelined))
                await waiting.wait()
            await noticed.wait()

    run(main())
    assert not caplog.records


@pytest.mark.parametrize("requests", [1, 3])
def test_a_client_that_sends_no_more_gets_the_answers_to_what_it_sent(requests: int):
    async def main():
        async with serving(echo) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write((b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 2\r\n\r\n{}") * requests)
            writer.write_eof()
            answers = await reader.read()
            writer.close()
        assert answers.count(b"HTTP/1.1 200 OK") == requests and answers.count(b"\r\n\r\n{}") == requests

    run(main())


# --- starting and stopping


def test_start_tells_the_url_and_takes_any_free_port():
    async def main():
        first, second = Server(ok, port=0), Server(ok, "localhost", 0)
        try:
            assert await first.start() == f"http://127.0.0.1:{first.port}"
            assert (await second.start()).endswith(f":{second.port}")
            assert 0 < first.port != second.port > 0
        finally:
            await first.stop()
            await second.stop()
            await second.stop()

    run(main())


def test_an_address_that_is_taken_is_told_in_one_line():
    async def main():
        async with serving(ok) as server:
            with pytest.raises(CannotListen, match=rf"^cannot listen on 127\.0\.0\.1:{server.port}: another program listens"):
                await Server(ok, port=server.port).start()

    run(main())


@pytest.mark.parametrize(
    ("host", "port", "error", "words"),
    [
        ("203.0.113.7", 0, CannotListen, "this machine has no such address"),
        ("no-such-host.invalid", 0, CannotListen, "the host is unknown"),
        ("a" * 300, 0, CannotListen, "the host is unknown"),
        ("", 0, InvalidArgument, "0.0.0.0 for all"),
        ("127.0.0.1", 65_536, InvalidArgument, "0 to 65535"),
        ("127.0.0.1", -1, InvalidArgument, "0 to 65535"),
    ],
)
def test_an_address_that_cannot_be_had_is_told_in_one_line(host: str, port: int, error: type[Exception], words: str):
    with pytest.raises(error, match=words) as told:
        run(Server(ok, host, port).start())
    assert "\n" not in str(told.value)


def test_a_port_of_the_system_is_told(monkeypatch: pytest.MonkeyPatch):
    def refuse(self, address):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(CannotListen, match="from 1024 up"):
        run(Server(ok, port=80).start())


def test_all_addresses_of_both_families():
    async def main():
        server = Server(ok, "0.0.0.0", 0)
        assert (await server.start()).startswith("http://127.0.0.1:")
        await server.stop()
        if socket.has_ipv6:
            server = Server(ok, "::1", 0)
            try:
                url = await server.start()
            except CannotListen:
                return  # a machine without it
            assert url == f"http://[::1]:{server.port}"
            await server.stop()

    run(main())


def test_stop_finishes_requests_and_closes_idle_connections_at_once():
    async def main():
        begun, go = asyncio.Event(), asyncio.Event()

        @endpoint
        async def app(request: Request) -> Response:
            if request.url.path == "/slow":
                begun.set()
                await go.wait()
            return success(request.url.path)

        async with serving(app) as server, client(server.port) as idle, client(server.port) as busy, client(server.port) as new:
            assert (await idle.ask(get())).status == 200
            await new.send(b"GET / HT")
            await busy.send(get("/slow"))
            await begun.wait()
            stopping = asyncio.create_task(server.stop(10))
            assert await idle.ended() == b""
            assert await new.ended() == b""
            with pytest.raises(ConnectionError):
                await asyncio.open_connection("127.0.0.1", server.port)
            assert not stopping.done()
            go.set()
            answer = await busy.answer()
            assert (answer.status, answer.header("connection")) == (200, "close")
            await stopping
            assert await busy.ended() == b""

    run(main())


def test_stop_cuts_what_does_not_end_in_time(caplog: pytest.LogCaptureFixture):
    async def main():
        begun, cancelled = asyncio.Event(), asyncio.Event()

        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        async with serving(app) as server, client(server.port) as peer:
            await peer.send(get())
            await begun.wait()
            await server.stop(0.05)
            assert cancelled.is_set()
            assert not server._state.tasks
            await peer.ended()

    run(main())
    assert not caplog.records


def test_signals_are_left_to_whoever_runs_the_server():
    async def main():
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        async with serving(ok):
            assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before

    run(main())


def test_many_connections_leave_nothing_behind():
    async def main():
        async with serving(ok) as server:

            async def one():
                async with client(server.port) as peer:
                    assert (await peer.ask(get())).status == 200

            for _ in range(10):
                await asyncio.gather(*(one() for _ in range(20)))
            await server._state.empty.wait()
            assert not server._state.tasks

    run(main())


def test_uvicorn_logs_nothing_of_its_own(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    asked(get())
    asked(b"\0")
    asked(get(headers=HOST + b"connection: upgrade\r\nupgrade: websocket\r\n"))
    assert [record for record in caplog.records if record.name.startswith("uvicorn") and record.levelno > 5] == []


# --- what errors become


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ApiFailure(418, "teapot", "short"), 418, "teapot"),
        (InvalidArgument("bad"), 400, "invalid_request"),
        (Unauthorized("no key"), 401, "unauthorized"),
        (NotFound("none"), 404, "not_found"),
        (Conflict("not dead"), 409, "conflict"),
        (StoreUnavailable("db.internal refused"), 503, "store_unavailable"),
        (StoreFull("disk"), 507, "store_full"),
        (StoreMoved("moved to postgres://secret"), 503, "store_moved"),
        (SchemaMissing("no tables"), 503, "schema_missing"),
        (HTTPException(404), 404, "not_found"),
        (HTTPException(405, headers={"Allow": "GET"}), 405, "method_not_allowed"),
        (HTTPException(429, "slow down"), 429, "too_many_requests"),
        (RuntimeError("secret"), 500, "internal"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "x"), 500, "internal"),
    ],
)
def test_each_error_has_its_status_and_code(error: Exception, status: int, code: str, caplog: pytest.LogCaptureFixture):
    answer = answer_to(error)
    assert answer.status_code == status
    assert json.loads(answer.body)["error"]["code"] == code
    assert b"secret" not in answer.body
    assert b"internal ref" not in answer.body
    headers = dict(answer.raw_headers)
    assert headers.get(b"retry-after") == (b"1" if code == "store_unavailable" else None)
    assert headers.get(b"allow") == (b"GET" if status == 405 else None)
    assert ("Traceback" in caplog.text) is False
    assert bool([record for record in caplog.records if record.exc_info]) is (status == 500)


def test_a_message_from_outside_stays_one_line_of_utf_8():
    found = json.loads(failure(400, "x", "a\nb\ud800\x00é").body)
    assert found["error"]["message"] == "a\\nb\\ud800\\x00é"


# --- any bytes, in any pieces

PIECES = [
    b"GET /a HTTP/1.1\r\n",
    b"POST /read HTTP/1.1\r\n",
    b"POST /skip HTTP/1.1\r\n",
    HOST,
    b"content-length: 3\r\n",
    b"transfer-encoding: chunked\r\n",
    b"connection: close\r\n",
    b"connection: upgrade\r\nupgrade: websocket\r\n",
    b"expect: 100-continue\r\n",
    b"\r\n",
    b"abc",
    b"3\r\nabc\r\n",
    b"0\r\n\r\n",
    b"0\r\nx: 1\r\n\r\n",
    b"\x00",
    b"JOB /x HTTP/1.1\r\n",
    b"HEAD /h HTTP/1.0\r\n\r\n",
    get("/b"),
    b"POST /read HTTP/1.1\r\n" + HOST + b"content-length: 3\r\n\r\nabc",
    b"POST /skip HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"POST /read HTTP/1.1\r\n" + HOST + b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 3\r\n\r\nabc",
]


async def _taken(pieces: list[bytes]) -> list[bytes]:
    """The requests that the server takes these pieces for, as far as it says so."""

    @endpoint
    async def app(request: Request) -> Response:
        body = await request.body() if request.scope["path"] == "/read" else b""
        return success([request.method, request.scope["raw_path"].decode(), body.decode("latin-1")])

    async with serving(app, head_seconds=0.1, idle=0.1, linger=0.1) as server, client(server.port) as peer:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                await peer.send(piece)
                await asyncio.sleep(0)
        answers = await peer.ended()
        await server._state.empty.wait()
        assert not server._state.tasks
    return re.findall(rb'{"data":\[.*?\],"meta":null}', answers)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from(PIECES), min_size=1, max_size=9), size=st.integers(1, 40))
def test_a_stream_is_read_the_same_however_it_is_cut(parts: list[bytes], size: int, caplog: pytest.LogCaptureFixture):
    stream = b"".join(parts)
    at_once = run(_taken([stream]))
    in_pieces = run(_taken([stream[place : place + size] for place in range(0, len(stream), size)]))
    both = min(len(at_once), len(in_pieces))  # a connection may end sooner, as bodies that nobody reads end it
    assert at_once[:both] == in_pieces[:both]
    assert not caplog.records
