"""Connections that are kept for the next call, and what happens when they do not live that long."""

import asyncio
import contextlib
import logging
import os
import random
import select
import socket
import struct
import threading

import pytest
from callee import OK, Callee, Line, answering, call, callee, calling, once, pause, run

from treadle.core.signals import CallFailed
from treadle.functions.caller import Answer

CLOSING = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"


async def idle(caller, url, count):
    """Wait until so many connections are idle."""
    while len(caller._pool._idle.get(url, ())) != count:
        await asyncio.sleep(0)


def test_one_connection_serves_calls_one_after_the_other():
    async def main():
        async with callee() as peer, calling() as caller:
            for _ in range(100):
                assert await call(caller, peer.url) == Answer(200)
            assert len(peer.lines) == 1

    run(main())


def test_functions_of_one_server_share_its_connections():
    async def main():
        async with callee() as peer, calling() as caller:
            await call(caller, peer.url + "/a", name="a")
            await call(caller, peer.url + "/b", name="b")
            await call(caller, peer.url.replace("127.0.0.1", "localhost"), name="c")
            assert len(peer.lines) == 2

    run(main())


def test_two_hundred_calls_at_once():
    async def main():
        async with callee() as peer, calling() as caller:

            async def often():
                for _ in range(5):
                    assert (await call(caller, peer.url)).status == 200

            await asyncio.gather(*(often() for _ in range(200)))
            assert len(peer.requests) == 1000
            assert len(peer.lines) <= 400
            assert len(caller._pool._open) <= 200

    run(main())


def test_no_call_waits_for_another():
    """`per_host` bounds what is kept: a call that waited for a connection would spend its own budget on that."""

    async def main():
        together = asyncio.Barrier(10)

        async def behaviour(line: Line):
            await line.request()
            await together.wait()
            await line.send(OK)

        async with callee(behaviour) as peer, calling(per_host=2) as caller:
            await asyncio.gather(*(call(caller, peer.url) for _ in range(10)))
            await idle(caller, peer.url, 2)
            while len(caller._pool._open) > 2:
                await asyncio.sleep(0)

    run(main())


def test_the_connection_that_was_used_last_is_used_next_and_the_others_expire():
    async def main():
        async with callee() as peer, calling(idle=0.3) as caller:
            loop = asyncio.get_running_loop()
            await asyncio.gather(*(call(caller, peer.url) for _ in range(5)))
            begun = loop.time()
            used = 0
            while sum(line.ended.is_set() for line in peer.lines) < 4:
                await call(caller, peer.url)
                used += 1
            assert 0.25 < loop.time() - begun < 2.0
            assert used > 10
            assert len(peer.lines) == 5
            assert len(caller._pool._open) == 1

    run(main())


def test_an_idle_connection_expires():
    async def main():
        loop = asyncio.get_running_loop()
        async with callee() as peer, calling(idle=0.1) as caller:
            for number in range(2):
                await call(caller, peer.url)
                begun = loop.time()
                await peer.lines[number].ended.wait()
                assert 0.09 < loop.time() - begun < 1.0
            assert not caller._pool._idle
            assert caller._pool._sweep is None

    run(main())


def test_a_connection_that_is_too_old_is_not_used_even_before_it_is_swept():
    async def main():
        async with callee() as peer, calling(idle=0.05) as caller:
            await call(caller, peer.url)
            caller._pool._sweep.cancel()
            await pause(0.06)
            await call(caller, peer.url)
            assert len(peer.lines) == 2

    run(main())


def test_an_idle_connection_goes_when_the_function_closes_it():
    async def main():
        async with callee() as peer, calling() as caller:
            await call(caller, peer.url)
            peer.lines[0].close()
            while caller._pool._open:
                await asyncio.sleep(0)
            assert not caller._pool._idle

    run(main())


@pytest.mark.parametrize("bytes_", [b"x", b"\r\n", CLOSING, b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"])
@pytest.mark.parametrize("noticed", [True, False])
def test_what_nobody_asked_for_ends_an_idle_connection_and_answers_no_call(bytes_, noticed):
    async def main():
        async with callee(answer=OK.replace(b"200", b"201")) as peer, calling() as caller:
            await call(caller, peer.url)
            line = peer.lines[0].writer.get_extra_info("socket")
            os.write(line.fileno(), bytes_)  # it is there at once, whereas the loop has yet to look
            if noticed:
                await peer.lines[0].ended.wait()
            assert (await call(caller, peer.url)).status == 201
            assert len(peer.lines) == 2
            await peer.lines[0].ended.wait()

    run(main())


# A kept connection that had been closed: one free second sending (decision 8).


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_kept_connection_that_is_closed_on_the_request_is_replaced_once(how, caplog):
    caplog.set_level(logging.DEBUG, "treadle")

    async def main():
        requests = []

        async def behaviour(line: Line):
            requests.append(await line.request())
            if line.number == 1:
                await line.send(OK)
                await answering(OK, requests)(line)
            await line.send(OK)
            requests.append(await line.request())
            getattr(line, how)()

        async with callee(behaviour) as peer, calling() as caller:
            for number in range(3):
                body = str(number).encode()
                assert (await call(caller, peer.url, body=body)).status == 200
            assert [request[-1:] for request in requests] == [b"0", b"1", b"1", b"2"]
            assert requests[1] == requests[2]
            assert len(peer.lines) == 2

    run(main())
    assert [record.message for record in caplog.records if record.name == "treadle"] == [
        "function 'x' had closed an idle connection; the call is sent again on a new one"
    ]


def test_it_is_replaced_only_once():
    async def main():
        async def behaviour(line: Line):
            await line.request()
            if line.number == 0:
                await line.send(OK)
                await line.request()
            line.close()

        async with callee(behaviour) as peer, calling() as caller:
            await call(caller, peer.url)
            with pytest.raises(CallFailed, match="Function 'x' cannot be reached: it closed the connection without an answer"):
                await call(caller, peer.url)
            assert len(peer.lines) == 2

    run(main())


def test_it_is_replaced_by_a_new_one_though_others_are_kept():
    """Those may have been closed as well, by a function that was started anew."""

    async def main():
        async with callee() as peer, calling() as caller:
            await asyncio.gather(*(call(caller, peer.url) for _ in range(5)))
            await idle(caller, peer.url, 5)
            peer.behaviour = answering(OK.replace(b"200", b"201"))
            for line in peer.lines:
                line.reader.feed_eof()  # so that it ends instead of reading the next request
            assert (await call(caller, peer.url)).status == 201
            assert len(peer.lines) == 6

    run(main())


@pytest.mark.parametrize("first", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
def test_it_is_not_replaced_once_a_byte_has_come(first):
    async def main():
        async def behaviour(line: Line):
            await line.request()
            await line.send(OK)
            await line.request()
            await line.send(first)
            line.close()

        async with callee(behaviour) as peer, calling() as caller:
            await call(caller, peer.url)
            with pytest.raises(CallFailed, match="closed the connection in the middle of its answer's headers"):
                await call(caller, peer.url)
            assert len(peer.lines) == 1

    run(main())


def test_it_is_not_replaced_at_a_timeout_and_both_share_one_budget():
    async def main():
        loop = asyncio.get_running_loop()

        async def behaviour(line: Line):
            await line.request()
            if line.number == 0:
                await line.send(OK)
                await line.request()
                await pause(0.1)
                line.close()

        async with callee(behaviour) as peer, calling() as caller:
            await call(caller, peer.url)
            begun = loop.time()
            with pytest.raises(CallFailed, match=r"timed out after 0\.2 s, waiting for its answer"):
                await call(caller, peer.url, seconds=0.2)
            assert 0.19 < loop.time() - begun < 1.0
            assert len(peer.lines) == 2
            peer.behaviour = answering(OK)

    run(main())


@pytest.mark.parametrize(
    ("goodbye", "lines", "status"),
    [(b"connection: close\r\n", 2, 200), (b"", 1, 408)],
)
def test_a_408_that_crosses_the_request_is_no_answer_to_it(goodbye, lines, status):
    """Some servers close an idle connection by a 408. One that leaves it open is the function's own answer."""

    async def main():
        async def behaviour(line: Line):
            await line.request()
            await line.send(OK)
            if line.number == 0:
                await line.request()
                await line.send(b"HTTP/1.1 408 Request Timeout\r\n" + goodbye + b"content-length: 0\r\n\r\n")
                if goodbye:
                    line.close()

        async with callee(behaviour) as peer, calling() as caller:
            await call(caller, peer.url)
            assert (await call(caller, peer.url)).status == status
            assert len(peer.lines) == lines

    run(main())


def test_a_function_that_closes_after_every_answer_without_saying_so():
    async def main():
        async with callee(once(OK)) as peer, calling() as caller:

            async def often():
                for _ in range(60):
                    assert (await call(caller, peer.url)).status == 200

            await asyncio.gather(*(often() for _ in range(5)))
            assert len(peer.lines) >= 300

    run(main())


@contextlib.contextmanager
def impatient(patience, how):
    """A function in a thread, which closes a connection that is idle for so many seconds: an own pace makes real races."""
    answered: list[int] = []
    listening = socket.create_server(("127.0.0.1", 0), backlog=100)
    over = threading.Event()

    def serve(sock):
        with sock:
            served = 0
            while not over.is_set():
                if not select.select([sock], [], [], next(patience) if served else 5.0)[0]:
                    break
                served += 1
                data = b""
                while not data.endswith(b"null"):
                    more = sock.recv(4096)
                    if not more:
                        return
                    data += more
                answered.append(1)
                sock.sendall(OK)
            if how == "resets":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def accept():
        while True:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            if over.is_set():
                sock.close()
                return
            thread = threading.Thread(target=serve, args=(sock,))
            threads.append(thread)
            thread.start()

    threads = [threading.Thread(target=accept)]
    threads[0].start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", answered
    finally:
        over.set()
        socket.create_connection(listening.getsockname()).close()
        for thread in threads:
            thread.join(5)
        listening.close()


@pytest.mark.parametrize("how", ["closes", "resets"])
@pytest.mark.parametrize("patience", [0.0, 0.0005, 0.005])
def test_a_function_that_closes_idle_connections_at_awkward_moments(patience, how):
    chance = random.Random(7)

    def about():
        while True:
            yield patience * chance.uniform(0.8, 1.2)

    async def main(url):
        async with calling() as caller:

            async def often(number):
                pauses = random.Random(number)
                for _ in range(40):
                    assert (await call(caller, url)).status == 200
                    await pause(patience * pauses.uniform(0.8, 1.2))

            await asyncio.gather(*(often(number) for number in range(10)))

    with impatient(about(), how) as (url, answered):
        run(main(url))
    assert len(answered) >= 400  # a first sending may have been read and answered into the reset


def test_a_server_that_is_restarted_between_calls():
    async def main():
        async with calling() as caller:
            for _ in range(10):
                async with callee() as peer:
                    with contextlib.suppress(AttributeError):
                        url = peer.url
                    assert (await call(caller, url)).status == 200
                    assert (await call(caller, url)).status == 200
                    assert len(peer.lines) == 1

    run(main())


# The end of a caller.


def test_close_ends_what_no_call_waits_for_and_nothing_else():
    async def main():
        go_on = asyncio.Event()

        async def behaviour(line: Line):
            await line.request()
            if line.number == 0:
                await line.send(b"HTTP/1.1 200 OK\r\n\r\nand so on")
            elif line.number == 1:
                await line.send(OK)
            else:
                await go_on.wait()
                await line.send(OK)

        async with callee(behaviour) as peer, calling() as caller:
            await call(caller, peer.url)
            await call(caller, peer.url)
            caller._pool._idle.clear()  # so that the next one opens another
            waiting = asyncio.create_task(call(caller, peer.url))
            await peer.has(3)
            await asyncio.gather(caller.close(), caller.close())
            assert len(caller._pool._open) == 1
            await peer.lines[0].ended.wait()
            await peer.lines[1].ended.wait()
            go_on.set()
            assert (await waiting).status == 200
            await peer.lines[2].ended.wait()  # it is not kept
            await caller.close()
            peer.behaviour = answering(OK)
            assert (await call(caller, peer.url)).status == 200
            await peer.lines[3].ended.wait()

    run(main())


def test_close_before_the_first_call():
    async def main():
        async with calling() as caller:
            await caller.close()

    run(main())


def test_nothing_is_left_when_the_loop_ends_around_a_call():
    async def main():
        async with callee() as peer:
            async with calling() as caller:
                await call(caller, peer.url)
                peer.behaviour = never
                task = asyncio.create_task(call(caller, peer.url + "/", seconds=1000))
                await asyncio.sleep(0)
            return task

    async def never(line: Line):
        await line.ended.wait()

    task = run(main())
    assert task.cancelled() or task.done()


def test_a_peer_is_a_peer():
    assert Callee(once(OK), None, "::1").url == "http://[::1]:0"
