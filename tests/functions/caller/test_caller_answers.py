"""What counts as an answer: a complete status line and headers, whatever comes then (F5)."""

import asyncio
import socket
import struct

import pytest
from callee import OK, Line, answering, call, callee, calling, once, run


def head(status, *lines):
    return "\r\n".join([f"HTTP/1.1 {status} Words", *lines, "", ""]).encode()


CHUNKED = "transfer-encoding: chunked"
KEPT = {
    "a body": (200, OK),
    "no body": (200, head(200, "content-length: 0")),
    "no reason": (200, b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n"),
    "an empty reason": (200, b"HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n"),
    "bytes beyond ASCII": (200, "HTTP/1.1 200 Très bien\r\nx: é\r\ncontent-length: 0\r\n\r\n".encode()),
    "bare line feeds": (200, b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok"),
    "a folded header": (200, head(200, "x: a", "  b", "content-length: 0")),
    "a control character": (200, head(200, "x: a\x01b", "content-length: 0")),
    "204": (204, head(204)),
    "304": (304, head(304)),
    "304 with a length": (304, head(304, "content-length: 500")),
    "chunks": (200, head(200, CHUNKED) + b"2\r\nok\r\n0\r\n\r\n"),
    "chunks with extensions and trailers": (200, head(200, CHUNKED) + b"2;a=b\r\nok\r\n0\r\nx-sum: 1\r\n\r\n"),
    "both lengths": (200, head(200, CHUNKED, "content-length: 9") + b"2\r\nok\r\n0\r\n\r\n"),
    "HTTP/1.0 that is kept alive": (200, b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok"),
    "100 before it": (200, head(100) + OK),
    "many before it": (200, head(102) * 90 + head(103, "link: </a>") + OK),
    "a large head": (200, head(200, "x: " + "a" * 60_000, "content-length: 0")),
    "an upgrade that is none": (426, head(426, "upgrade: h2c", "connection: upgrade", "content-length: 0")),
    "a compressed body that is none": (200, head(200, "content-encoding: gzip", "content-length: 2") + b"no"),
    **{
        str(status): (status, head(status, "content-length: 0", "retry-after: 1", "location: http://127.0.0.1:1/"))
        for status in (
            201,
            202,
            299,
            300,
            301,
            302,
            303,
            307,
            308,
            400,
            401,
            404,
            405,
            408,
            413,
            429,
            499,
            500,
            502,
            503,
            599,
            999,
        )
    },
}
DROPPED = {
    "closing": (200, head(200, "connection: close", "content-length: 2") + b"ok"),
    "closing and 408": (408, head(408, "connection: close", "content-length: 0")),
    "HTTP/1.0": (200, b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"),
    "204 with a body": (204, head(204, "content-length: 2") + b"ok"),
    "304 with a body": (304, head(304, "content-length: 2") + b"ok"),
    "a broken chunk": (200, head(200, CHUNKED) + b"zz\r\nok"),
    "a chunk without its end": (200, head(200, CHUNKED) + b"2\r\nokay\r\n0\r\n\r\n"),
    "a broken chunk of an error": (500, head(500, CHUNKED) + b"\xff\xff"),
    "more than was asked for": (200, OK + OK),
    "the beginning of more": (200, OK + b"HT"),
    "garbage behind it": (200, OK + b"garbage"),
    "101": (101, head(101, "connection: upgrade", "upgrade: websocket") + b"\x81\x00"),
    "101 without more": (101, head(101)),
    "an interim answer that closes": (
        204,
        b"HTTP/1.0 100 Continue\r\nconnection: close\r\n\r\n" + head(204, "connection: close"),
    ),
}
OPEN = {
    "no length": (200, head(200) + b"until the end"),
    "an unknown coding": (200, head(200, "transfer-encoding: gzip") + b"ok"),
    "half a body": (200, head(200, "content-length: 100") + b"half"),
    "no body at all": (503, head(503, "content-length: 100")),
    "half a chunk": (200, head(200, CHUNKED) + b"100\r\nhalf"),
    "no last chunk": (200, head(200, CHUNKED) + b"2\r\nok\r\n"),
    "an enormous length": (200, head(200, "content-length: 18446744073709551615")),
}


@pytest.mark.parametrize("case", KEPT)
def test_an_answer_whose_connection_is_used_again(case):
    status, answer = KEPT[case]

    async def main():
        async with callee(answer=answer) as peer, calling() as caller:
            for _ in range(3):
                assert (await call(caller, peer.url)).status == status
            assert len(peer.lines) == 1
            assert len(peer.requests) == 3

    run(main())


@pytest.mark.parametrize("case", DROPPED)
def test_an_answer_whose_connection_is_dropped(case):
    status, answer = DROPPED[case]

    async def main():
        async with callee(answer=answer) as peer, calling() as caller:
            for number in range(3):
                assert (await call(caller, peer.url)).status == status
                await peer.lines[number].ended.wait()
            assert len(peer.lines) == 3
            assert len(peer.requests) == 3

    run(main())


@pytest.mark.parametrize("ending", ["stays", "closes", "resets"])
@pytest.mark.parametrize("case", OPEN)
def test_an_answer_that_does_not_end(case, ending):
    status, answer = OPEN[case]

    async def behaviour(line: Line):
        await line.request()
        await line.send(answer)
        match ending:
            case "closes":
                line.close()
            case "resets":
                line.reset()

    async def main():
        async with callee(behaviour) as peer, calling() as caller:
            for number in range(3):
                assert (await call(caller, peer.url, seconds=0.3 if ending == "stays" else 10.0)).status == status
                await peer.lines[number].ended.wait()  # at the deadline, where the function stays
            assert len(peer.lines) == 3

    run(main())


@pytest.mark.parametrize("case", KEPT | DROPPED | OPEN)
def test_an_answer_byte_by_byte(case):
    status, answer = (KEPT | DROPPED | OPEN)[case]
    if len(answer) > 10_000:
        answer = answer.replace(b"a" * 59_000, b"")

    async def behaviour(line: Line):
        await line.request()
        for number in range(len(answer)):
            await line.send(answer[number : number + 1])
            await asyncio.sleep(0)

    async def main():
        async with callee(behaviour) as peer, calling() as caller:
            assert (await call(caller, peer.url)).status == status

    run(main())


@pytest.mark.parametrize("case", KEPT | DROPPED | OPEN)
def test_an_answer_and_a_close(case):
    status, answer = (KEPT | DROPPED | OPEN)[case]

    async def main():
        async with callee(once(answer)) as peer, calling() as caller:
            for _ in range(5):
                assert (await call(caller, peer.url)).status == status

    run(main())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_is_not_followed(status):
    async def main():
        async with callee() as other, callee() as peer, calling() as caller:
            peer.behaviour = answering(head(status, f"location: {other.url}/", "content-length: 0"), peer.requests)
            assert (await call(caller, peer.url)).status == status
            assert len(peer.requests) == 1
            assert not other.lines

    run(main())


def test_an_answer_before_the_request_was_sent():
    """As a server gives it that has too much to do, and does not read."""

    async def busy(line: Line):
        await line.send(head(503, "connection: close", "content-length: 0"))
        line.close()

    async def main():
        async with callee(busy) as peer, calling() as caller:
            for _ in range(20):
                assert (await call(caller, peer.url)).status == 503

    run(main())


@pytest.mark.parametrize("ending", ["closes", "resets"])
def test_an_answer_before_the_body_was_read(ending):
    """What is not read makes the peer's system send a reset, on which the answer must not be lost."""

    async def behaviour(line: Line):
        await line.head()
        await line.send(head(413, "connection: close", "content-length: 0"))
        line.close() if ending == "closes" else line.reset()

    async def main():
        async with callee(behaviour) as peer, calling() as caller:
            for _ in range(50):
                assert (await call(caller, peer.url, body=b"x" * 1_048_576)).status == 413
            assert len(peer.lines) == 50

    run(main())


def test_an_answer_into_which_the_request_is_written_when_it_is_there_already(monkeypatch):
    """A server that is too busy answers, and resets the connection before the first write: that fails, but was answered."""

    async def main():
        with socket.create_server(("127.0.0.1", 0)) as listening:
            async with calling() as caller:
                connect = caller._opening.connect

                async def slowly(place):
                    sock = await connect(place)
                    accepted, _ = listening.accept()
                    with accepted:
                        accepted.sendall(head(503, "content-length: 0"))
                        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return sock

                monkeypatch.setattr(caller._opening, "connect", slowly)
                url = f"http://127.0.0.1:{listening.getsockname()[1]}"
                for size in (10, 1_000_000):
                    assert (await call(caller, url, body=b"x" * size)).status == 503
                while caller._pool._open:
                    await asyncio.sleep(0)

    run(main())


@pytest.mark.parametrize("size", range(12_000_000, 12_500_000, 100_000))
def test_a_body_is_sent_to_its_end_although_the_answer_is_there(size):
    body = b"x" * size
    got = []

    async def main():
        answered = asyncio.Event()

        async def behaviour(line: Line):
            head = await line.head()
            line.writer.transport.pause_reading()
            await line.send(OK)
            await answered.wait()
            line.writer.transport.resume_reading()
            got.append(len(head) + len(await line.end()))

        async with callee(behaviour) as peer, calling() as caller:
            assert (await call(caller, peer.url, body=body, seconds=1000)).status == 200
            answered.set()
            await peer.lines[0].ended.wait()
            assert got[0] > len(body)
            peer.behaviour = answering(OK)
            assert (await call(caller, peer.url)).status == 200
            assert len(peer.lines) == 2  # nobody knows where on the first one the next request would begin

    run(main())


def test_a_function_that_answers_and_never_reads_is_left_at_the_deadline():
    async def behaviour(line: Line):
        line.writer.transport.pause_reading()
        await line.send(OK)
        await line.ended.wait()

    async def main():
        loop = asyncio.get_running_loop()
        async with callee(behaviour) as peer, calling() as caller:
            begun = loop.time()
            assert (await call(caller, peer.url, body=b"x" * 20_000_000, seconds=0.2)).status == 200
            assert loop.time() - begun < 0.2
            (connection,) = caller._pool._open
            peer.lines[0].writer.transport.resume_reading()
            while caller._pool._open:
                await asyncio.sleep(0)
            assert loop.time() - begun < 1.0
            assert connection._timer is None

    run(main())
