"""A call is over within its timeout, whatever the server does; the whole call, and not each piece of it."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.client.faces import KEY, Face
from tests.client.server import DROP, HANG, Action, Answer, Drip, Raw, Server, black_hole, refusal
from tests.client.shapes import JOB, JOB_ID

from treadle.client import TimedOut, Unreachable, create_async_client
from treadle.client.network import Network

HEAD = b"HTTP/1.1 200 OK\r\n"
STALLS: dict[str, Action] = {
    "no answer": HANG,
    "half a head": Raw(HEAD, hangs=True),
    "a head that drips": Drip(HEAD + b"x: "),
    "half a body": Raw(HEAD + b'content-length: 100\r\n\r\n{"data":', hangs=True),
    "a body that drips": Drip(HEAD + b"content-length: 1000000\r\n\r\n"),
    "a body without end that drips": Drip(HEAD + b"connection: close\r\n\r\n"),
}
TIMEOUT, SLACK = 0.4, 3.0  # a machine that is busy with other things may add to it


@contextmanager
def within(least: float, most: float = SLACK) -> Iterator[None]:
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert least <= took < least + most, f"took {took:.2f} s"


@pytest.mark.parametrize("stall", STALLS)
def test_a_call_ends_in_time(stall: str, face: Face, server: Server) -> None:
    server.script.append(STALLS[stall])
    with face.open(server.url, timeout=TIMEOUT) as opened:
        with within(TIMEOUT), pytest.raises(TimedOut, match=r"was not over within 0.4 s$") as raised:
            opened.functions.get_job(JOB_ID)
        assert raised.value.sent
        server.wait_until_left()
        server.script.append(Answer(data=JOB))
        assert opened.functions.get_job(JOB_ID).id == JOB_ID, "the client is as good as before"
    assert len(server.received) == 2


def test_a_change_that_ends_so_may_have_been_made(face: Face, server: Server) -> None:
    server.script.append(HANG)
    with (
        face.open(server.url, timeout=0.1) as opened,
        pytest.raises(TimedOut, match="it may have been carried out all the same"),
    ):
        opened.functions.enqueue_job("x")
    assert len(server.received) == 1


def test_a_server_that_does_not_read_is_not_waited_for_either(face: Face, server: Server) -> None:
    server.reads = False
    with face.open(server.url, timeout=TIMEOUT) as opened, within(TIMEOUT), pytest.raises(TimedOut):
        opened.functions.enqueue_job("x", "x" * 20_000_000)


def test_all_the_tries_together_have_the_time_of_one_call(face: Face, server: Server) -> None:
    server.script += [DROP, refusal(503), HANG]
    with face.open(server.url, timeout=1.2) as opened, within(1.2), pytest.raises(TimedOut):
        opened.functions.get_job(JOB_ID)
    assert len(server.received) == 3


def test_a_connection_has_its_own_time_within_that_of_the_call(face: Face) -> None:
    with black_hole() as url:
        with face.open(url, connect_timeout=0.2, retries=0) as opened:
            with within(0.2), pytest.raises(TimedOut, match=r"no connection within 0.2 s$"):
                opened.functions.get_job(JOB_ID)
        with face.open(url, timeout=0.2, retries=0) as opened:
            with within(0.2), pytest.raises(TimedOut) as raised:
                opened.functions.get_job(JOB_ID)
            assert "within 0.2 s" in str(raised.value)


def test_a_direct_call_may_have_a_time_of_its_own(face: Face, server: Server) -> None:
    server.script += [HANG, HANG]
    with face.open(server.url, timeout=0.1) as opened, within(0.5), pytest.raises(TimedOut, match=r"within 0.5 s"):
        opened.functions.invoke("x", timeout=0.5)
    with face.open(server.url) as opened, within(0.1), pytest.raises(TimedOut, match=r"within 0.1 s"):
        opened.functions.invoke("x", timeout=0.1)


def test_tls_that_does_not_begin_is_a_connection_that_was_not_made(face: Face, server: Server) -> None:
    server.reads = False
    with face.open(server.url.replace("http:", "https:"), connect_timeout=0.2, retries=0) as opened:
        with within(0.2), pytest.raises(TimedOut, match=r"no connection within 0.2 s") as raised:
            opened.functions.enqueue_job("x")
    assert not raised.value.sent


def test_an_awaited_call_can_be_cancelled(server: Server) -> None:
    async def main() -> None:
        async with create_async_client(server.url, KEY) as client:
            server.script.append(HANG)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.functions.get_job(JOB_ID)
            await asyncio.to_thread(server.wait_until_left)
            server.script.append(Answer(data=JOB))
            assert (await client.functions.get_job(JOB_ID)).id == JOB_ID

    asyncio.run(main())


def test_the_addresses_of_a_host_share_the_time_to_connect(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with black_hole() as hole:
        ports = [int(hole.rpartition(":")[2])] * 2 + [server.port]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)) for port in ports]

        def addresses(*_: Any, **__: Any) -> Any:
            return found

        monkeypatch.setattr(socket, "getaddrinfo", addresses)
        with within(0.2, 1.0):
            Network().connect_tcp("many.example", 80, timeout=time.monotonic() + 0.3).close()
        found.pop()
        with within(0.3, 1.0), pytest.raises(Exception, match="timed out"):
            Network().connect_tcp("many.example", 80, timeout=time.monotonic() + 0.3)


def test_a_host_that_has_no_address_cannot_be_reached(face: Face) -> None:
    with face.open("http://no-such-host.invalid", retries=0) as opened, pytest.raises(Unreachable) as raised:
        opened.functions.enqueue_job("x")
    assert not raised.value.sent
