"""Calls that fail, each with its reason in one line that names the function (F5)."""

import asyncio
import errno
import gc
import re
import socket

import pytest
from callee import OK, Line, answering, call, callee, calling, once, run

from treadle.core.signals import CallFailed
from treadle.functions.caller.failures import unreachable
from treadle.functions.caller.place import place


def failing(main):
    """The text of the failure that the program ends with."""
    with pytest.raises(CallFailed) as raised:
        run(main)
    text = str(raised.value)
    assert "\n" not in text
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    return text


async def against(behaviour, **options):
    async with callee(behaviour) as peer, calling() as caller:
        try:
            await call(caller, peer.url, **options)
        finally:
            assert len(peer.lines) <= 1  # a failed call is not repeated
            for line in peer.lines:
                await line.ended.wait()


async def calling_out(url, **options):
    async with calling() as caller:
        await call(caller, url, **options)


MALFORMED = {
    "nothing of HTTP": b"hello\r\n\r\n",
    "HTTP/0.9": b"<html>hello</html>",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a relative of HTTP": b"RTSP/1.0 200 OK\r\n\r\n",
    "one more": b"ICE/1.0 200 OK\r\n\r\n",
    "and behind an empty line": b"\r\nRTSQ/1.0 200 OK\r\n\r\n",
    "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
    "TLS": b"\x15\x03\x01\x00\x02\x02\x46",
    "zeros": b"\0" * 1000,
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "a short status": b"HTTP/1.1 20 OK\r\n\r\n",
    "a long status": b"HTTP/1.1 2000 OK\r\n\r\n",
    "status 000": b"HTTP/1.1 000 OK\r\ncontent-length: 0\r\n\r\n",
    "status 099": b"HTTP/1.1 099 OK\r\ncontent-length: 0\r\n\r\n",
    "an unknown version": b"HTTP/7.3 200 OK\r\n\r\n",
    "lower case": b"http/1.1 200 OK\r\n\r\n",
    "a header without colon": b"HTTP/1.1 200 OK\r\nhello\r\n\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    "garbage behind an interim answer": b"HTTP/1.1 100 Continue\r\n\r\ngarbage",
}


@pytest.mark.parametrize("stays", [True, False], ids=["stays", "closes"])
@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_answer(case, stays):
    behaviour = answering(MALFORMED[case]) if stays else once(MALFORMED[case])
    text = failing(against(behaviour))
    assert re.fullmatch(r"Function 'x' cannot be reached: it gave a malformed answer \(.+\)", text)


def test_what_a_malformed_answer_is_told_as():
    text = failing(against(answering(b"RTSP/1.0 200 OK\r\n\r\n"), name="send-report"))
    assert text == "Function 'send-report' cannot be reached: it gave a malformed answer (it does not begin with HTTP/)"
    assert (
        failing(against(answering(b"HTML")))
        == "Function 'x' cannot be reached: it gave a malformed answer (it does not begin with HTTP/)"
    )


HALVES = [
    b"H",
    b"HTTP/1.1 200",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\nx: y\r\n",
    b"HTTP/1.1 200 OK\r\nx: y\r\n\r",
    OK[:-4],
]


@pytest.mark.parametrize("half", HALVES)
def test_half_a_head_and_a_close(half):
    assert (
        failing(against(once(half)))
        == "Function 'x' cannot be reached: it closed the connection in the middle of its answer's headers"
    )


def test_half_a_head_and_a_reset():
    async def behaviour(line: Line):
        await line.request()
        await line.send(b"HTTP/1.1 200 OK\r\nx: ")
        line.reset()

    assert (
        failing(against(behaviour))
        == "Function 'x' cannot be reached: it reset the connection in the middle of its answer's headers"
    )


def test_an_interim_answer_and_a_close():
    text = failing(against(once(b"HTTP/1.1 100 Continue\r\n\r\n")))
    assert text == "Function 'x' cannot be reached: it closed the connection in the middle of its answer's headers"


@pytest.mark.parametrize("read", ["nothing", "the request"])
def test_a_close_without_an_answer(read):
    async def behaviour(line: Line):
        if read == "the request":
            await line.request()
        line.close()

    text = failing(against(behaviour))
    assert re.fullmatch("Function 'x' cannot be reached: it (closed|reset) the connection without an answer", text)


def test_a_close_for_writing_alone_while_a_large_request_is_sent():
    async def main():
        failed = asyncio.Event()

        async def behaviour(line: Line):
            line.writer.transport.pause_reading()
            line.writer.write_eof()
            await failed.wait()
            line.writer.transport.resume_reading()

        async with callee(behaviour) as peer, calling() as caller:
            try:
                await call(caller, peer.url, body=b"x" * 20_000_000)
            finally:
                failed.set()
                await peer.lines[0].ended.wait()

    text = failing(main())
    assert text == "Function 'x' cannot be reached: it closed the connection without an answer"


def test_a_reset_without_an_answer():
    async def behaviour(line: Line):
        await line.request()
        line.reset()

    assert failing(against(behaviour)) == "Function 'x' cannot be reached: it reset the connection without an answer"


@pytest.mark.parametrize("line", [b"x: " + b"a" * 300_000, b"x: a\r\n" * 50_000, b"x: a" + b"\r\n x" * 40_000])
def test_a_head_without_end(line):
    text = failing(against(answering(b"HTTP/1.1 200 OK\r\n" + line + b"\r\ncontent-length: 0\r\n\r\n")))
    assert text == "Function 'x' cannot be reached: it gave an answer whose headers are over the limit of 65536 bytes"


def test_a_head_of_the_limit_and_one_byte_more():
    start, end = b"HTTP/1.1 200 OK\r\nx: ", b"\r\ncontent-length: 0\r\n\r\n"
    fits = start + b"a" * (65_536 - len(start) - len(end)) + end

    async def main():
        async with callee(answer=fits) as peer, calling() as caller:
            assert (await call(caller, peer.url)).status == 200
            peer.behaviour = answering(fits.replace(b"x: ", b"x: a"))
            peer.lines[0].close()
            await peer.lines[0].ended.wait()
            await call(caller, peer.url)

    assert "limit of 65536 bytes" in failing(main())


def test_a_flood_of_interim_answers():
    text = failing(against(answering(b"HTTP/1.1 102 Processing\r\n\r\n" * 101 + OK)))
    assert text == "Function 'x' cannot be reached: it gave over 100 interim answers (1xx) and no final one"


def test_refused():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        text = failing(calling_out(f"http://127.0.0.1:{port}"))
        assert text == f"Function 'x' cannot be reached: connection refused by 127.0.0.1:{port}"
        assert failing(calling_out(f"http://localhost:{port}")) == text.replace("127.0.0.1", "localhost")
        assert "connection refused" in failing(calling_out(f"https://localhost:{port}"))


def resolving(monkeypatch, *addresses):
    """Let every host have these addresses."""

    def found(host, port, *_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)


def test_every_address_of_a_host_is_tried(monkeypatch):
    resolving(monkeypatch, "127.0.0.2", "127.0.0.3", "127.0.0.1")

    async def main():
        async with callee() as peer, calling() as caller:
            assert (await call(caller, f"http://three.example:{peer.port}")).status == 200
            assert b"host: three.example:" in peer.requests[0]

    run(main())


def test_an_address_that_is_silent_holds_up_the_next_one_for_a_moment_only(monkeypatch):
    resolving(monkeypatch, "127.0.0.2", "127.0.0.1")

    async def main():
        async with callee() as peer, calling() as caller:
            with socket.socket() as silent, socket.socket() as first, socket.socket() as second:
                silent.bind(("127.0.0.2", peer.port))
                silent.listen(0)
                for sock in (first, second):
                    sock.setblocking(False)
                    sock.connect_ex(silent.getsockname())
                loop = asyncio.get_running_loop()
                begun = loop.time()
                assert (await call(caller, f"http://two.example:{peer.port}")).status == 200
                assert 0.2 < loop.time() - begun < 2.0
                await asyncio.sleep(0)
                assert not [task for task in asyncio.all_tasks() if "_connected" in repr(task)]

    run(main())


def test_addresses_that_all_refuse(monkeypatch):
    resolving(monkeypatch, "127.0.0.2", "127.0.0.3", "127.0.0.1")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        text = failing(calling_out(f"http://three.example:{port}"))
    assert text == f"Function 'x' cannot be reached: connection refused by three.example:{port}"


@pytest.mark.parametrize("turns", range(12))
def test_a_call_cancelled_while_addresses_are_tried_leaves_nothing(monkeypatch, turns):
    resolving(monkeypatch, "127.0.0.2", "127.0.0.1", "127.0.0.3")

    async def main():
        async with callee() as peer, calling() as caller:
            task = asyncio.create_task(call(caller, f"http://three.example:{peer.port}"))
            while not asyncio.all_tasks() - {task, asyncio.current_task()} and not task.done():
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            for _ in range(3):
                await asyncio.sleep(0)
            assert len(caller._pool._open) == sum(len(shelf) for shelf in caller._pool._idle.values())

    run(main())
    gc.collect()  # where a socket that was left would be noticed


def test_an_unknown_host():
    text = failing(calling_out("http://no-such-host.invalid:8080"))
    assert text.startswith("Function 'x' cannot be reached: the host name 'no-such-host.invalid' is unknown")


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "." * 3, "x" * 300])
def test_a_host_name_that_cannot_be_one(host):
    assert failing(calling_out(f"http://{host}:8080")).startswith(
        f"Function 'x' cannot be reached: the host name '{host}' is unknown"
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "ftp://u:secret@h/",
        "http://u:secret@h:99999/",
        "nothing",
        "http://u:secret",
        "http://h:secret@",
        "http://[::1",
        "http://h:0",
    ],
)
def test_a_url_that_is_none(url):
    text = failing(calling_out(url))
    assert text.startswith("Function 'x' cannot be reached: its URL")
    assert "secret" not in text


def test_a_password_in_a_url_is_neither_sent_nor_told():
    async def main():
        async with callee() as peer, calling() as caller:
            assert (await call(caller, peer.url.replace("//", "//user:secret@"))).status == 200
            assert b"secret" not in peer.requests[0]
            assert b"authorization" not in peer.requests[0].lower()
            url = peer.url
        with pytest.raises(CallFailed) as raised:
            await calling_out(url.replace("//", "//user:secret@"))
        assert "secret" not in str(raised.value)

    run(main())


SYSTEM = {
    errno.ECONNREFUSED: "connection refused by h:1",
    errno.ENETUNREACH: "the network of h:1 is unreachable",
    errno.EHOSTUNREACH: "there is no route to h:1",
    errno.ETIMEDOUT: "h:1 did not take the connection up",
    errno.ECONNRESET: "the connection was reset by h:1",
    errno.EMFILE: "this process has too many open files",
    errno.EADDRNOTAVAIL: "this machine has no free port left",
    errno.EACCES: "the connection to h:1 failed (permission denied)",
}


@pytest.mark.parametrize("number", SYSTEM)
def test_what_the_system_says_is_told_in_words(number):
    at = place("http://h:1")
    for error in (
        OSError(number, "Connect call failed ('10.0.0.1', 1)"),
        ExceptionGroup(
            "all", [OSError(number, "Connect call failed ('::1', 1, 0, 0)"), OSError(number, "Connect call failed")]
        ),
    ):
        assert str(unreachable("x", at, error)) == f"Function 'x' cannot be reached: {SYSTEM[number]}"


def test_the_most_telling_of_several_reasons_is_told():
    error = ExceptionGroup("all", [OSError(errno.ENETUNREACH, "no"), OSError(errno.ECONNREFUSED, "no")])
    assert str(unreachable("x", place("http://h:1"), error)) == "Function 'x' cannot be reached: connection refused by h:1"


def test_names_that_cannot_be_looked_up_now():
    error = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    text = "the host name 'h' is unknown for now (temporary failure in name resolution)"
    assert str(unreachable("x", place("http://h:1"), error)) == f"Function 'x' cannot be reached: {text}"


@pytest.mark.parametrize(
    "error", [RuntimeError("Executor shutdown: secret"), OSError(), OSError("secret"), ValueError("secret")]
)
def test_what_nobody_foresaw_is_told_without_its_text(error):
    text = str(unreachable("x", place("http://h:1"), error))
    assert text == f"Function 'x' cannot be reached: the connection to h:1 failed ({type(error).__name__})"
