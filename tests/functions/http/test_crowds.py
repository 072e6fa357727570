"""Many clients, and few who want much: requests far ahead, slow readers, more connections than there is room for (F14)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import socket
from collections.abc import AsyncIterator

import pytest
from edges import HOST, Client, client, endpoint, run, serving
from starlette.requests import Request
from starlette.responses import Response

from treadle.functions.http import accepting
from treadle.functions.http.connection import Connection
from treadle.functions.http.envelope import success
from treadle.functions.http.lifetime import Limits
from treadle.functions.http.server import Server
from treadle.functions.http.taking import Taking

LARGE = 15_000_000  # more than the systems on both sides take


def get(path: str = "/", headers: bytes = b"") -> bytes:
    return f"GET {path} HTTP/1.1\r\n".encode() + HOST + headers + b"\r\n"


@endpoint
async def ok(request: Request) -> Response:
    return success(request.url.path)


@endpoint
async def echo(request: Request) -> Response:
    return Response(await request.body())


@endpoint
async def large(request: Request) -> Response:
    return Response(bytes(LARGE))


class Gate:
    """An application that answers `/slow` when it is opened, and all else at once. `begun` counts what waits for that."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun = asyncio.Semaphore(0)
        self.listens = asyncio.Event()  # for a client that goes

    async def __call__(self, scope, receive, send) -> None:
        await receive()
        if scope["path"] == "/slow":
            self.begun.release()
            await self.listens.wait()
            going, opened = asyncio.create_task(receive()), asyncio.create_task(self.open.wait())
            await asyncio.wait({going, opened}, return_when=asyncio.FIRST_COMPLETED)
            going.cancel()
            opened.cancel()
        await success(scope["path"])(scope, receive, send)


def only(server: Server) -> Connection:
    [connection] = server._state.connections
    assert isinstance(connection, Connection)
    return connection


# --- requests far ahead


@pytest.mark.parametrize("size", [33, 5_000])
def test_requests_far_ahead_are_not_read_and_then_answered_in_order(size: int):
    async def main():
        gate = Gate()
        async with serving(gate) as server, client(server.port) as peer:
            await peer.send(get("/slow"))
            await gate.begun.acquire()
            filler = b"x: " + b"y" * max(0, size - 38) + b"\r\n"
            count = (600_000 if size < 1_000 else 3_000_000) // (33 + len(filler))
            peer.writer.write(b"".join(get(f"/{number}", filler) for number in range(count)))
            connection = only(server)
            while not connection.flow.read_paused:
                await asyncio.sleep(0)
            gate.listens.set()
            for _ in range(100):
                await asyncio.sleep(0)
                assert len(connection.pipeline) <= 120
                assert len(connection._ahead) < 400_000
                assert connection.flow.read_paused  # although the application waits to be told of a client that goes
            gate.open.set()
            assert json.loads((await peer.answer()).body)["data"] == "/slow"
            for number in range(count):
                assert json.loads((await peer.answer()).body)["data"] == f"/{number}"
                assert len(connection.pipeline) <= 120
                assert len(connection._ahead) < 400_000

    run(main())


def test_others_are_answered_while_one_sends_without_end():
    async def main():
        answered = 0

        @endpoint
        async def app(request: Request) -> Response:
            nonlocal answered
            answered += request.url.path == "/many"
            return success(request.url.path)

        async with serving(app) as server, client(server.port) as many, client(server.port) as one:
            many.writer.write(get("/many") * 20_000)
            while not answered:
                await asyncio.sleep(0)
            before = answered
            assert (await one.ask(get("/one"))).status == 200
            assert answered - before < 200
            many.writer.transport.abort()

    run(main())


def test_a_client_that_reads_nothing_does_not_have_its_requests_taken_on():
    async def main():
        begun = 0

        @endpoint
        async def app(request: Request) -> Response:
            nonlocal begun
            begun += 1
            return Response(bytes(1_000_000))

        async with serving(app, writing=0.2) as server, client(server.port) as peer:
            peer.reader._transport.pause_reading()  # type: ignore[attr-defined]  # what a stuck client does
            peer.writer.write(get() * 30_000)
            await server._state.empty.wait()
            assert begun < 50

    run(main())


def test_bodies_behind_one_another_arrive_whole():
    bodies = [bytes((index + number) % 251 for index in range(200_000)) for number in range(4)]

    async def main():
        async with serving(echo) as server, client(server.port) as peer:
            for body in bodies:
                peer.writer.write(b"POST / HTTP/1.1\r\n" + HOST + b"content-length: %d\r\n\r\n" % len(body) + body)
            for body in bodies:
                assert (await peer.answer()).body == body

    run(main())


def test_a_refusal_far_ahead_comes_in_its_turn_and_is_the_last():
    async def main():
        async with serving(ok) as server, client(server.port) as peer:
            await peer.send(get() * 300 + b"GET / HTTP/3.0\r\n" + HOST + b"\r\n" + get() * 300)
            assert [(await peer.answer()).status for _ in range(301)] == [200] * 300 + [400]
            assert await peer.ended() == b""

    run(main())


# --- slow readers


@contextlib.asynccontextmanager
async def reading_little(port: int) -> AsyncIterator[Client]:
    """A client whose system takes little for it."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=65_536)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("request_", [get(headers=b"connection: close\r\n"), b"GET / HTTP/1.0\r\n\r\n"])
def test_a_long_answer_arrives_whole_before_the_connection_ends(request_: bytes):
    async def main():
        async with serving(large, linger=0) as server, reading_little(server.port) as peer:
            await peer.send(request_)
            assert (await peer.head())[0] == 200
            peer.reader._transport.pause_reading()  # type: ignore[attr-defined]  # what a busy client does
            for _ in range(200):
                await asyncio.sleep(0)
            peer.reader._transport.resume_reading()  # type: ignore[attr-defined]  # the same
            assert len(await peer.ended()) == LARGE

    run(main())


@pytest.mark.parametrize("sends_more", [True, False])
@pytest.mark.parametrize("ending", [b"", b"connection: close\r\n"])
def test_a_client_that_reads_steadily_is_not_cut(ending: bytes, sends_more: bool):
    async def main():
        tick = asyncio.Event()
        async with serving(large, linger=0.3, idle=0.3, writing=0.3) as server, reading_little(server.port) as peer:
            await peer.send(get(headers=ending))
            if not sends_more:
                peer.writer.write_eof()
            assert (await peer.head())[0] == 200
            left = LARGE
            while left:
                left -= len(await peer.reader.readexactly(min(left, 500_000)))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.03):
                        await tick.wait()
            assert await peer.ended() == b""

    run(main())


@pytest.mark.parametrize("ending", [b"", b"connection: close\r\n"])
def test_a_client_that_stops_reading_a_whole_answer_is_left(ending: bytes):
    async def main():
        async with serving(large, writing=0.2) as server, reading_little(server.port) as peer:
            await peer.send(get(headers=ending))
            assert (await peer.head())[0] == 200
            await server._state.empty.wait()
            assert len(await peer.ended()) < LARGE

    run(main())


@pytest.mark.parametrize("sends_more", [True, False])
def test_a_client_that_leaves_the_end_of_an_answer_is_left(sends_more: bool):
    async def main():
        async def app(scope, receive, send):
            await receive()
            while not (sends_more or connection._half_closed):
                await asyncio.sleep(0)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while not connection.transport.get_write_buffer_size():
                await send({"type": "http.response.body", "body": bytes(10_000), "more_body": True})
            assert not connection.flow.write_paused
            await send({"type": "http.response.body", "body": b""})

        async with serving(app, writing=0.2, idle=0.2) as server, reading_little(server.port) as peer:
            while not server._state.connections:
                await asyncio.sleep(0)
            connection = only(server)
            await peer.send(get())
            if not sends_more:
                peer.writer.write_eof()
            peer.reader._transport.pause_reading()  # type: ignore[attr-defined]  # what a stuck client does
            await server._state.empty.wait()

    run(main())


def test_a_client_that_reads_too_slowly_is_left():
    async def main():
        async with serving(large, writing=0.1, pace=1e12) as server, reading_little(server.port) as peer:
            await peer.send(get())
            while not server._state.empty.is_set():
                await peer.reader.read(10_000)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.02):
                        await server._state.empty.wait()

    run(main())


def test_what_counts_as_reading_on():
    taking = Taking(1_000_000, now=100, grace=60, pace=1_000)
    assert taking.goes_on(999_999, 160)
    assert not taking.goes_on(999_999, 161)  # nothing since
    taking = Taking(1_000_000, now=100, grace=60, pace=1_000)
    assert taking.goes_on(999_000, 160)
    assert taking.goes_on(940_000, 220)
    assert not taking.goes_on(939_999, 280)  # 120 s at less than 1,000 a second


def test_the_next_request_may_come_while_the_answer_is_read():
    async def main():
        async with serving(large, idle=0, linger=0) as server, reading_little(server.port) as peer:
            await peer.send(get())
            assert (await peer.head())[0] == 200
            for _ in range(200):
                await asyncio.sleep(0)
            await peer.send(get())
            assert len(await peer.reader.readexactly(LARGE)) == LARGE
            assert len((await peer.answer()).body) == LARGE

    run(main())


# --- more clients than there is room for


def test_above_the_most_clients_are_told_so_once_in_the_log(caplog: pytest.LogCaptureFixture):
    async def main():
        gate = Gate()
        gate.listens.set()
        async with (
            serving(gate, connections=2) as server,
            client(server.port) as first,
            client(server.port) as second,
        ):
            for busy in (first, second):
                await busy.send(get("/slow"))
                await gate.begun.acquire()
            for _ in range(3):
                async with client(server.port) as third:
                    answer = await third.ask(get())
                    assert (answer.status, answer.error[0]) == (503, "too_many_connections")
                    assert (answer.header("connection"), answer.header("retry-after")) == ("close", "1")
                    assert await third.ended() == b""
            gate.open.set()
            for busy in (first, second):
                assert (await busy.answer()).status == 200
            async with client(server.port) as third:
                assert (await third.ask(get())).status == 200

    run(main())
    [record] = caplog.records
    assert record.getMessage() == "2 clients are connected, the most that are served at once; more are answered 503"


def test_who_came_without_room_is_served_if_there_is_some_when_it_asks():
    async def main():
        gate = Gate()
        gate.listens.set()
        async with serving(gate, connections=1) as server, client(server.port) as first:
            await first.send(get("/slow", b"connection: close\r\n"))
            await gate.begun.acquire()
            async with client(server.port) as second:
                while len(server._state.connections) < 2:
                    await asyncio.sleep(0)
                gate.open.set()
                assert (await first.answer()).status == 200
                first.writer.close()
                while len(server._state.connections) > 1:
                    await asyncio.sleep(0)
                assert (await second.ask(get())).status == 200

    run(main())


def test_who_has_been_without_a_request_for_longest_makes_way(caplog: pytest.LogCaptureFixture):
    async def main():
        async with (
            serving(ok, connections=3) as server,
            client(server.port) as silent,
            client(server.port) as first,
            client(server.port) as second,
        ):
            for peer in (first, second, first):
                assert (await peer.ask(get())).status == 200
            async with client(server.port) as third:
                assert (await third.ask(get())).status == 200
                assert await silent.ended() == b""
                async with client(server.port) as fourth:
                    assert (await fourth.ask(get())).status == 200
                    assert await second.ended() == b""
                    assert (await first.ask(get())).status == 200
                    assert (await third.ask(get())).status == 200

    run(main())
    assert not caplog.records


def test_nobody_is_let_in_where_all_are_busy_until_one_goes():
    async def main():
        gate = Gate()
        gate.listens.set()
        async with serving(gate, connections=2, linger=60) as server, contextlib.AsyncExitStack() as stack:
            peers = []
            for path in ("/slow", "/slow", "/"):
                peers.append(await stack.enter_async_context(client(server.port)))
                await peers[-1].send(get(path))
                if path == "/slow":
                    await gate.begun.acquire()
            assert (await peers[2].answer()).status == 503  # the one more that is let in; it does not end its connection
            last = await stack.enter_async_context(client(server.port))
            await last.send(get())
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(server._state.connections) == 3
            assert not server._accepting._accepts
            gate.open.set()
            assert (await peers[0].answer()).status == 200
            peers[0].writer.close()
            assert (await last.answer()).status == 200

    run(main())


@pytest.mark.parametrize("begun", [b"", b"GET / HT"])
def test_a_flood_of_clients_without_a_request_does_not_keep_out_one_that_has_one(begun: bytes):
    async def main():
        async with serving(ok, connections=20) as server, contextlib.AsyncExitStack() as stack:
            for _ in range(100):
                peer = await stack.enter_async_context(client(server.port))
                await peer.send(begun)
            assert len(server._state.connections) <= 22
            async with client(server.port) as peer:
                assert (await peer.ask(get())).status == 200

    run(main())


def test_a_flood_that_comes_at_once_does_not_keep_out_the_one_behind_it():
    async def main():
        server = Server(ok, port=0, limits=Limits(connections=3))
        await server.listen()
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(20):
                await stack.enter_async_context(client(server.port))
            async with client(server.port) as peer:
                await peer.send(get())
                await server.serve()  # which finds them all
                assert (await peer.answer()).status == 200
        await server.stop()

    run(main())


def test_too_many_open_files_are_waited_for(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    tries = 0
    scarce = True
    accept = socket.socket.accept

    def accept_if_there_is_one(self: socket.socket):
        nonlocal tries
        tries += 1
        if scarce:
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(self)

    async def main():
        nonlocal scarce
        async with serving(ok) as server, client(server.port) as idle:
            assert (await idle.ask(get())).status == 200
            monkeypatch.setattr(socket.socket, "accept", accept_if_there_is_one)
            async with client(server.port) as peer:
                assert await idle.ended() == b""  # it makes way
                for _ in range(100):
                    await asyncio.sleep(0)
                assert tries == 1  # it does not try without end
                monkeypatch.setattr(accepting, "_AGAIN", 0.01)
                server._accepting._try_again()
                while tries < 5:
                    await asyncio.sleep(0)
                scarce = False
                assert (await peer.ask(get())).status == 200

    run(main())
    assert [record.getMessage() for record in caplog.records] == [
        "no connection can be accepted, trying again: Too many open files"
    ]


def test_a_client_that_goes_before_it_is_taken_leaves_its_place():
    async def main():
        async with serving(ok, connections=1) as server:
            for _ in range(20):
                sock = socket.create_connection(("127.0.0.1", server.port))
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                sock.close()
            async with client(server.port) as peer:
                assert (await peer.ask(get())).status == 200
            while server._state.room._inside:
                await asyncio.sleep(0)

    run(main())
