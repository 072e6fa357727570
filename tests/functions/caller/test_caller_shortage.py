"""Calls that come to nothing for want of something in this process, of which no function is to blame (F5)."""

import asyncio
import errno
import gc
import socket
import ssl

import pytest
from callee import Line, call, callee, calling, run
from tests.functions.shortages import no_more_files

from treadle.core.signals import CallFailed
from treadle.functions.caller import caller as calls, opening
from treadle.functions.caller.failures import unreachable
from treadle.functions.caller.place import place
from treadle.functions.shortage import Shortage

FILES = "this process has too many open files"


def lacking(main):
    with pytest.raises(Shortage) as raised:
        run(main)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    assert str(raised.value) == f"Function 'x' cannot be reached: {raised.value.lacking}"
    return raised.value.lacking


async def without_files(url):
    async with callee() as peer, calling() as caller:
        with no_more_files():
            await call(caller, url.replace("PORT", str(peer.port)))


@pytest.mark.parametrize("url", ["http://127.0.0.1:PORT", "https://127.0.0.1:PORT"])
def test_no_file_for_a_connection(url):
    assert lacking(without_files(url)) == FILES
    gc.collect()  # where a socket that was left would be noticed


@pytest.mark.parametrize("host", ["localhost", "some.example"])
def test_no_file_to_look_a_name_up(host):
    assert lacking(without_files(f"http://{host}:PORT")) == FILES


def test_a_kept_connection_needs_no_file():
    async def main():
        async with callee() as peer, calling() as caller:
            await call(caller, peer.url)
            with no_more_files():
                assert (await call(caller, peer.url)).status == 200
            peer.lines[0].close()
            await peer.lines[0].ended.wait()
            with no_more_files():
                await call(caller, peer.url)

    assert lacking(main()) == FILES


def test_certificates_that_cannot_be_opened_are_not_left_out_for_ever(monkeypatch):
    made = []
    real = ssl.create_default_context

    def no_file():
        if not made:
            made.append(None)
            raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(calls, "check_for_files", no_file)
    monkeypatch.setattr(calls.ssl, "create_default_context", lambda: made.append(1) or real())

    async def closing(line: Line):
        line.close()

    async def main():
        async with callee(closing) as peer, calling() as caller:
            url = peer.url.replace("http:", "https:")
            with pytest.raises(Shortage):
                await call(caller, url)
            assert caller._tls is None
            for _ in range(2):
                with pytest.raises(CallFailed, match="cannot be reached") as failed:
                    await call(caller, url)
                assert not isinstance(failed.value, Shortage)
            assert made == [None, 1]

    run(main())
    gc.collect()


def test_an_address_that_was_not_tried_may_be_the_one_that_answers():
    error = ExceptionGroup("all", [OSError(errno.ECONNREFUSED, "no"), OSError(errno.EMFILE, "no")])
    assert isinstance(unreachable("x", place("http://h:1"), error), Shortage)


def no_free_port(monkeypatch, family):
    """Connections of that family are refused an address of their own."""

    async def sock_connect(self, sock, address):
        if sock.family == family:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return await real(self, sock, address)

    real = asyncio.SelectorEventLoop.sock_connect
    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", sock_connect)


def test_no_free_port(monkeypatch):
    no_free_port(monkeypatch, socket.AF_INET)

    async def main():
        async with callee() as peer, calling() as caller:
            await call(caller, peer.url)

    assert lacking(main()) == "this machine has no free port left"


def test_an_address_of_a_kind_that_this_machine_has_not_is_no_shortage(monkeypatch):
    """It gives the same error, and for ever: IPv6 that is switched off, say."""
    no_free_port(monkeypatch, socket.AF_INET)

    class Unroutable(socket.socket):
        def connect(self, address):
            if self.type == socket.SOCK_DGRAM:
                raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
            return super().connect(address)

    async def main():
        async with callee() as peer, calling() as caller:
            monkeypatch.setattr(opening.socket, "socket", Unroutable)
            await call(caller, peer.url)

    with pytest.raises(
        CallFailed, match=r"^Function 'x' cannot be reached: the network of 127\.0\.0\.1:\d+ is unreachable$"
    ) as it:
        run(main())
    assert not isinstance(it.value, Shortage)


@pytest.mark.parametrize("number", [errno.ENOBUFS, errno.ENOMEM])
def test_a_connection_that_is_lost_for_want_of_memory_here(number):
    async def main():
        async def behaviour(line: Line):
            await line.request()
            connection = next(iter(caller._pool._open))
            connection._transport._fatal_error(OSError(number, "no"))

        async with calling() as caller, callee(behaviour) as peer:
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # which asyncio tells of in debug mode
            await call(caller, peer.url)

    assert lacking(main()) in ("this machine has no room left for what is sent", "this machine has no memory left")
