"""What is sent: byte for byte this, and nothing else (F4)."""

import asyncio
import socket

import pytest
from callee import JOB, OK, Line, call, callee, calling, run

from treadle import __version__
from treadle.core.errors import InvalidArgument


def sent(port, *, host="127.0.0.1", base="", method="JOB", body=b'{"b":1,"a":[2]}', named=None):
    return (
        f"{method} {base}/jobs/{JOB} HTTP/1.1\r\nhost: {named or f'{host}:{port}'}\r\n"
        f"user-agent: treadle/{__version__}\r\naccept: */*\r\n"
        f"content-type: application/json\r\nx-treadle-signature: sha256=ab\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body


HEADERS = (("content-type", "application/json"), ("x-treadle-signature", "sha256=ab"))


@pytest.mark.parametrize("method", ["JOB", "POST"])
@pytest.mark.parametrize("base", ["", "/", "/team/report", "/team/report/"])
def test_a_request_is_exactly_this(method, base):
    async def main():
        async with callee() as peer, calling() as caller:
            await call(caller, peer.url + base, method=method, headers=HEADERS, body=b'{"b":1,"a":[2]}')
            assert peer.requests == [sent(peer.port, base=base.rstrip("/"), method=method)]

    run(main())


def test_an_address_of_version_6_stands_in_brackets():
    async def main():
        async with callee(host="::1") as peer, calling() as caller:
            await call(caller, peer.url, headers=HEADERS, body=b"null")
            assert peer.requests == [sent(peer.port, host="[::1]", body=b"null")]

    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    run(main())


@pytest.mark.parametrize(("url", "named"), [("http://function", "function"), ("http://function:8080", "function:8080")])
def test_the_default_port_is_left_out_of_the_host(url, named, monkeypatch):
    async def main():
        async with callee() as peer, calling() as caller:

            def elsewhere(host, port, *_):
                assert (host, port) == ("function", 8080 if ":8080" in url else 80)
                return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", peer.port))]

            monkeypatch.setattr(socket, "getaddrinfo", elsewhere)
            await call(caller, url, headers=HEADERS, body=b"null")
            assert peer.requests == [sent(0, named=named, body=b"null")]

    run(main())


def test_nothing_of_one_answer_is_in_the_next_request():
    cookies = OK.replace(b"\r\n\r\n", b"\r\nset-cookie: a=b\r\nwww-authenticate: Basic\r\n\r\n")

    async def main():
        async with callee(answer=cookies) as peer, calling() as caller:
            for _ in range(3):
                await call(caller, peer.url, headers=HEADERS, body=b"null")
            assert peer.requests == [sent(peer.port, body=b"null")] * 3
            assert len(peer.lines) == 1

    run(main())


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def main():
        async with callee() as peer, calling() as caller:
            assert (await call(caller, peer.url)).status == 200

    run(main())


def test_a_body_of_a_mebibyte_comes_whole_however_slowly_it_is_read():
    body = bytes(range(256)) * 4096
    got = []

    async def slow(line: Line):
        for _ in range(2):
            head = await line.head()
            parts = []
            left = len(body)
            while left:
                parts.append(await line.reader.read(20_000))
                left -= len(parts[-1])
                await asyncio.sleep(0)
            got.append((head, b"".join(parts)))
            await line.send(OK)

    async def main():
        async with callee(slow) as peer, calling() as caller:
            for _ in range(2):
                await call(caller, peer.url, headers=HEADERS, body=body)
            assert len(peer.lines) == 1
            assert got == [(sent(peer.port, body=body)[: -len(body)], body)] * 2

    run(main())


def test_a_body_is_not_poured_into_memory_while_the_function_does_not_read():
    async def main():
        reading = asyncio.Event()

        async def waits(line: Line):
            line.writer.transport.pause_reading()
            await reading.wait()
            line.writer.transport.resume_reading()
            await line.request()
            await line.send(OK)

        async with callee(waits) as peer, calling() as caller:
            task = asyncio.create_task(call(caller, peer.url, body=b"x" * 20_000_000))
            await peer.has(1)
            for _ in range(50):
                await asyncio.sleep(0)
            (connection,) = caller._pool._open
            assert 0 < connection._transport.get_write_buffer_size() <= 2 * 65_536
            reading.set()
            assert (await task).status == 200

    run(main())


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/jobs/a b"},
        {"path": "/jobs/a\r\nx: y"},
        {"path": "/jobs/é"},
        {"method": "JOB\n"},
        {"headers": (("x", "a\r\nb: c"),)},
        {"headers": (("x", "a\rb"),)},
        {"headers": (("x", "a\nb"),)},
        {"headers": (("x", "a\0b"),)},
        {"headers": (("x", "secret-é"),)},
    ],
)
def test_nothing_breaks_out_of_its_line(change):
    async def main():
        async with callee() as peer, calling() as caller:
            with pytest.raises(InvalidArgument) as raised:
                await call(caller, peer.url, **change)
            assert "secret" not in str(raised.value)
            assert not peer.lines

    run(main())
