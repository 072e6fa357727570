"""Clients that close their sending side: they may wait for an answer, or have gone for good (F3, F14)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from edges import HOST, Call, client, endpoint, function, run, serving
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from treadle.functions.http.connection import Connection
from treadle.functions.http.proxy import Proxy
from treadle.functions.http.server import Server

GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"


async def half_closed(server: Server) -> None:
    """Wait until the server knows."""
    [connection] = server._state.connections
    assert isinstance(connection, Connection)
    while not connection._half_closed:
        await asyncio.sleep(0)


def test_a_direct_call_of_a_client_that_sends_no_more_is_answered():
    async def main():
        called, known = asyncio.Event(), asyncio.Event()

        async def behave(call: Call) -> None:
            called.set()
            await known.wait()
            await call.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

        proxy = Proxy()
        async with function(behave) as fn:

            @endpoint
            async def app(request: Request) -> Response:
                return await proxy.forward(request, "fn", fn.url, "/", "anon", None, 10)

            async with serving(app) as server, client(server.port) as peer:
                await peer.send(b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 3\r\n\r\nabc")
                peer.writer.write_eof()
                await called.wait()
                await half_closed(server)
                known.set()
                answer = await peer.answer()
                assert (answer.status, answer.body) == (200, b"ok")
                assert await peer.ended() == b""
            await proxy.close()

    run(main())


def test_a_stream_goes_on_to_a_client_that_sends_no_more():
    async def main():
        @endpoint
        async def app(request: Request) -> Response:
            async def pieces():
                yield b"a"
                await half_closed(server)
                yield b"b"

            return StreamingResponse(pieces())

        async with serving(app) as server, client(server.port) as peer:
            await peer.send(GET)
            assert (await peer.head())[0] == 200
            peer.writer.write_eof()
            assert [piece async for piece in peer.chunks()] == [b"a", b"b"]
            assert await peer.ended() == b""

    run(main())


@pytest.mark.parametrize("begun", [False, True])
def test_a_client_that_is_asked_whether_it_is_there_gets_its_answer(begun: bool):
    async def main():
        asked = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await send({"type": "http.response.start", "status": 200, "headers": []}) if begun else None
            await asked.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []}) if not begun else None
            await send({"type": "http.response.body", "body": b"0123456789abcdef", "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        async with serving(app, linger=0.05) as server, client(server.port) as peer:
            await peer.send(GET)
            peer.writer.write_eof()
            if begun:
                assert (await peer.head())[0] == 200
                assert await peer.reader.readexactly(1) == b"0"
                asked.set()
                assert [piece async for piece in peer.chunks()] == [b"0123456789abcdef"]
            else:
                assert (await peer.head()) == (100, [])
                asked.set()
                assert (await peer.answer()).body == b"0123456789abcdef"
            assert await peer.ended() == b""

    run(main())


def test_an_older_client_is_asked_nothing():
    async def main():
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await half_closed(server)
            [connection] = server._state.connections
            while connection._timer.when() > asyncio.get_running_loop().time():  # type: ignore[attr-defined]  # our own
                await asyncio.sleep(0)
            for _ in range(5):
                await asyncio.sleep(0)
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})

        async with serving(app, linger=0.05) as server, client(server.port) as peer:
            await peer.send(b"GET / HTTP/1.0\r\n\r\n")
            peer.writer.write_eof()
            assert (await peer.answer()).body == b"ok"

    run(main())


def test_a_whole_request_is_answered_where_the_one_behind_it_breaks_off():
    async def main():
        @endpoint
        async def app(request: Request) -> Response:
            if request.method == "GET":
                await half_closed(server)
                return Response("whole")
            return Response(await request.body())

        async with serving(app) as server, client(server.port) as peer:
            await peer.send(GET + b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 5\r\n\r\nab")
            peer.writer.write_eof()
            assert (await peer.answer()).body == b"whole"
            assert await peer.ended() == b""

    run(main())


def test_requests_far_ahead_of_a_client_that_sends_no_more_are_answered():
    async def main():
        first = True

        @endpoint
        async def app(request: Request) -> Response:
            nonlocal first
            if first:
                first = False
                await half_closed(server)
            return Response("ok")

        async with serving(app) as server, client(server.port) as peer:
            await peer.send(GET * 1_000)
            peer.writer.write_eof()
            for _ in range(1_000):
                assert (await peer.answer()).body == b"ok"
            assert await peer.ended() == b""

    run(main())
