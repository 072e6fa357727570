"""Calls over TLS: the same, and certificates are verified."""

import asyncio
import shutil
import ssl
import subprocess

import pytest
from callee import OK, Line, answering, call, callee, calling, once, run

from treadle.core.signals import CallFailed


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The paths of a certificate for localhost, and of its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl command to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = [
        *("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"),
        *("-keyout", str(key), "-out", str(cert), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this openssl makes no certificate: {done.stderr[-200:]}")
    return cert, key


def serving(pair):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    return context


def trusting(pair):
    return ssl.create_default_context(cafile=pair[0])


def by_name(peer):
    return f"https://localhost:{peer.port}"


def test_a_function_over_tls(certificate):
    async def main():
        async with callee(tls=serving(certificate)) as peer, calling(tls=trusting(certificate)) as caller:
            for _ in range(5):
                assert (await call(caller, by_name(peer))).status == 200
            assert len(peer.lines) == 1
            assert b"\r\nhost: localhost:%d\r\n" % peer.port in peer.requests[0]
            assert (await call(caller, by_name(peer), body=b"x" * 1_048_576)).status == 200
            assert len(peer.requests[-1]) > 1_048_576

    run(main())


def failure(main):
    with pytest.raises(CallFailed) as raised:
        run(main)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_certificate_that_nobody_trusts(certificate):
    async def main():
        async with callee(tls=serving(certificate)) as peer, calling() as caller:
            main.port = peer.port
            await call(caller, by_name(peer))

    text = failure(main())
    assert text.replace("self signed", "self-signed") == (
        f"Function 'x' cannot be reached: the TLS certificate of localhost:{main.port} is not accepted "
        "(self-signed certificate)"
    )


def test_a_certificate_of_another_host(certificate):
    async def main():
        async with callee(tls=serving(certificate)) as peer, calling(tls=trusting(certificate)) as caller:
            await call(caller, peer.url)

    text = failure(main())
    assert "is not accepted (IP address mismatch, certificate is not valid for '127.0.0.1')" in text


def test_a_function_without_tls_behind_https():
    async def main():
        async with callee(answering(OK)) as peer, calling() as caller:
            main.port = peer.port

            async def plain(line: Line):
                await line.reader.read(10)
                await line.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

            peer.behaviour = plain
            await call(caller, by_name(peer))

    assert failure(main()).startswith(f"Function 'x' cannot be reached: TLS with localhost:{main.port} failed (")


def test_a_function_with_tls_behind_http(certificate):
    async def main():
        async with callee(tls=serving(certificate)) as peer, calling() as caller:
            await call(caller, by_name(peer).replace("https", "http"), seconds=5)

    assert failure(main()).startswith("Function 'x' ")


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_handshake_that_breaks_off(how):
    async def main():
        async def behaviour(line: Line):
            await line.reader.read(10)
            getattr(line, how)()

        async with callee(behaviour) as peer, calling() as caller:
            main.port = peer.port
            await call(caller, by_name(peer))

    text = failure(main())
    assert f"localhost:{main.port}" in text
    assert text.startswith("Function 'x' cannot be reached: ")


def test_a_handshake_that_stalls():
    async def main():
        async def behaviour(line: Line):
            await line.ended.wait()

        async with callee(behaviour) as peer, calling() as caller:
            begun = asyncio.get_running_loop().time()
            try:
                await call(caller, by_name(peer), seconds=0.2)
            finally:
                assert asyncio.get_running_loop().time() - begun < 1.0

    assert failure(main()) == "Function 'x' timed out after 0.2 s, while connecting"


def test_an_answer_without_an_end_and_a_kept_connection_that_is_closed(certificate):
    async def main():
        async with callee(once(OK), tls=serving(certificate)) as peer, calling(tls=trusting(certificate)) as caller:
            for _ in range(10):
                assert (await call(caller, by_name(peer))).status == 200
            peer.behaviour = answering(b"HTTP/1.1 200 OK\r\n\r\nand so on")
            for _ in range(2):
                assert (await call(caller, by_name(peer), seconds=0.1)).status == 200
                await peer.lines[-1].ended.wait()

    run(main())


def test_an_answer_before_the_body_was_read(certificate):
    async def behaviour(line: Line):
        await line.head()
        await line.send(b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        line.close()

    async def main():
        async with callee(behaviour, tls=serving(certificate)) as peer, calling(tls=trusting(certificate)) as caller:
            for _ in range(10):
                assert (await call(caller, by_name(peer), body=b"x" * 1_048_576)).status == 413

    run(main())


@pytest.mark.parametrize("turns", [0, 1, 3, 10, 30])
def test_a_cancelled_call_leaves_nothing(certificate, turns):
    async def never(line: Line):
        await line.ended.wait()

    async def main():
        async with callee(never, tls=serving(certificate)) as peer, calling(tls=trusting(certificate)) as caller:
            task = asyncio.create_task(call(caller, by_name(peer), seconds=1000))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            while caller._pool._open:
                await asyncio.sleep(0)

    run(main())
