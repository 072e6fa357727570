"""The budget of a call, its cancellation, and what becomes of the rest of an answer (F5)."""

import asyncio
import socket

import pytest
from callee import OK, Line, answering, call, callee, calling, pause, run

from treadle.core.signals import CallFailed

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def timed_out(caller, url, seconds, **options):
    """The text of the failure of a call that runs into its deadline, no earlier and hardly later."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(CallFailed) as raised:
        await call(caller, url, seconds=seconds, **options)
    assert seconds <= loop.time() - begun + 0.002 < seconds + 1.0
    return str(raised.value)


def silent(read):
    async def behaviour(line: Line):
        if read:
            await line.request()
        else:
            line.writer.transport.pause_reading()
            await line.ended.wait()

    return behaviour


def test_a_function_that_does_not_answer():
    async def main():
        async with callee(silent(True)) as peer, calling() as caller:
            assert await timed_out(caller, peer.url, 0.1) == "Function 'x' timed out after 0.1 s, waiting for its answer"
            await peer.lines[0].ended.wait()

    run(main())


def test_a_function_that_does_not_read():
    async def main():
        async with callee(silent(False)) as peer, calling() as caller:
            text = await timed_out(caller, peer.url, 0.1, body=b"x" * 20_000_000)
            assert text == "Function 'x' timed out after 0.1 s, while its request was being sent"

    run(main())


@pytest.mark.parametrize("drop", [b"a", b"a: b\r\n", b"HTTP/1.1 102 Processing\r\n\r\n"])
def test_a_head_that_drips(drop):
    async def behaviour(line: Line):
        await line.request()
        await line.send(b"HTTP/1.1 102 Processing\r\n\r\n" if drop.startswith(b"H") else b"HTTP/1.1 200 OK\r\n")
        while True:
            await line.send(drop)
            await pause(0.01)

    async def main():
        async with callee(behaviour) as peer, calling() as caller:
            text = await timed_out(caller, peer.url, 0.15)
            assert text == "Function 'x' timed out after 0.15 s, in the middle of its answer's headers"
            await peer.lines[0].ended.wait()

    run(main())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_place_that_does_not_take_the_connection_up(scheme):
    async def main():
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            sock.listen(0)
            port = sock.getsockname()[1]
            full = [socket.socket() for _ in range(3)]
            for each in full:
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", port))
            try:
                async with calling() as caller:
                    for host in ("127.0.0.1", "localhost"):
                        text = await timed_out(caller, f"{scheme}://{host}:{port}", 0.1)
                        assert text == "Function 'x' timed out after 0.1 s, while connecting"
            finally:
                for each in full:
                    each.close()

    run(main())


@pytest.mark.parametrize("seconds", [0, -1, 0.0001])
def test_no_time_at_all(seconds):
    async def main():
        async with callee(silent(True)) as peer, calling() as caller:
            with pytest.raises(CallFailed, match="Function 'x' timed out after"):
                await call(caller, peer.url, seconds=seconds)

    run(main())


@pytest.mark.parametrize(
    ("seconds", "shown"), [(399.99864, "400"), (400, "400"), (397.26, "397.3"), (4.9997, "5"), (0.25, "0.25")]
)
def test_the_budget_is_told_for_people(seconds, shown):
    async def main():
        async with callee(silent(True)) as peer, calling() as caller:
            loop = asyncio.get_running_loop()
            call_at = loop.call_at

            def sooner(when, *rest, **options):
                return call_at(when if when - loop.time() > 1000 else min(when, loop.time() + 0.01), *rest, **options)

            waiting = asyncio.create_task(call(caller, peer.url, seconds=1000))
            await peer.has(1)
            loop.call_at = sooner
            with pytest.raises(CallFailed, match=f"timed out after {shown} s, "):
                await call(caller, peer.url, seconds=seconds)
            waiting.cancel()
            await asyncio.wait({waiting})

    run(main())


def test_the_answer_is_known_when_its_head_is():
    async def main():
        go_on = asyncio.Event()

        async def behaviour(line: Line):
            await line.request()
            await line.send(HEAD)
            await go_on.wait()
            await line.send(b"2\r\nok\r\n0\r\n\r\n")
            await answering(OK)(line)

        async with callee(behaviour) as peer, calling() as caller:
            assert (await call(caller, peer.url, seconds=10)).status == 200  # and nothing goes on here yet
            (connection,) = caller._pool._open
            go_on.set()
            while not caller._pool._idle:
                await asyncio.sleep(0)
            assert (await call(caller, peer.url)).status == 200
            assert len(peer.lines) == 1  # the body came to its end in time, so the connection is used again
            assert caller._pool._open == {connection}

    run(main())


def test_a_body_that_drips_is_cut_at_the_deadline():
    async def behaviour(line: Line):
        await line.request()
        await line.send(HEAD)
        while not line.writer.is_closing():
            await line.send(b"1\r\na\r\n")
            await pause(0.01)

    async def main():
        loop = asyncio.get_running_loop()
        async with callee(behaviour) as peer, calling() as caller:
            begun = loop.time()
            assert (await call(caller, peer.url, seconds=0.2)).status == 200
            assert loop.time() - begun < 0.15
            await peer.lines[0].ended.wait()
            assert 0.19 < loop.time() - begun < 1.0

    run(main())


def test_an_endless_body_is_cut_at_its_limit():
    async def main():
        sent = 0

        async def behaviour(line: Line):
            nonlocal sent
            await line.request()
            await line.send(HEAD)
            while True:
                await line.send(b"1000\r\n" + b"a" * 4096 + b"\r\n")
                sent += 4096

        async with callee(behaviour) as peer, calling(body_limit=100_000) as caller:
            assert (await call(caller, peer.url, seconds=1000)).status == 200
            await peer.lines[0].ended.wait()
            assert sent < 20_000_000  # what the sockets hold
            assert not caller._pool._open

    run(main())


@pytest.mark.parametrize(("size", "lines"), [(50_000, 1), (60_000, 2)])
def test_a_body_up_to_its_limit_leaves_the_connection_of_use(size, lines):
    async def main():
        async def behaviour(line: Line):
            while True:
                await line.request()
                await line.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
                await pause(0.01)  # for a segment of its own
                for _ in range(size // 1000):
                    await line.send(b"a" * 1000)
                    await asyncio.sleep(0)

        async with callee(behaviour) as peer, calling(body_limit=50_000) as caller:
            for _ in range(2):
                assert (await call(caller, peer.url)).status == 200
                while caller._pool._ending:
                    await asyncio.sleep(0)
            assert len(peer.lines) == lines

    run(main())


def test_bodies_that_do_not_end_are_not_gathered():
    async def behaviour(line: Line):
        await line.request()
        await line.send(HEAD)

    async def main():
        async with callee(behaviour) as peer, calling(per_host=3) as caller:
            for number in range(10):
                assert (await call(caller, peer.url, seconds=1000)).status == 200
                if number >= 3:
                    await peer.lines[number - 3].ended.wait()
            assert [line.ended.is_set() for line in peer.lines] == [True] * 7 + [False] * 3

    run(main())


@pytest.mark.parametrize("stage", ["connecting", "handshake", "sending", "waiting", "head"])
def test_a_cancelled_call_closes_its_connection_at_once(stage):
    async def main():
        seen = asyncio.Event()

        async def behaviour(line: Line):
            if stage == "sending":
                await line.head()
                line.writer.transport.pause_reading()
            elif stage != "handshake":
                await line.request()
            if stage == "head":
                await line.send(b"HTTP/1.1 200 OK\r\n")
            seen.set()
            if stage == "sending":
                await pause(0.05)
                line.writer.transport.resume_reading()

        async with callee(behaviour) as peer, calling() as caller:
            url = peer.url if stage != "handshake" else peer.url.replace("http:", "https:")
            task = asyncio.create_task(call(caller, url, body=b"x" * (20_000_000 if stage == "sending" else 2), seconds=1000))
            if stage == "connecting":
                await asyncio.sleep(0)
            else:
                await peer.has(1)
                await seen.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not caller._pool._idle
            for line in peer.lines:
                await line.ended.wait()
            while caller._pool._open:
                await asyncio.sleep(0)

    run(main())


@pytest.mark.parametrize("turns", range(8))
def test_a_call_cancelled_while_it_connects_leaves_nothing(turns):
    async def main():
        async with callee() as peer, calling() as caller:
            task = asyncio.create_task(call(caller, peer.url))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            for _ in range(5):
                await asyncio.sleep(0)
            assert len(caller._pool._open) == len(caller._pool._idle.get(peer.url, ()))
            assert (await call(caller, peer.url)).status == 200

    run(main())


def test_a_cancelled_call_over_a_kept_connection_closes_it():
    async def main():
        async with callee() as peer, calling() as caller:
            await call(caller, peer.url)
            asked = asyncio.Event()

            async def behaviour(line: Line):
                await line.request()
                asked.set()

            peer.behaviour = behaviour
            peer.lines[0].writer.transport.pause_reading()
            task = asyncio.create_task(call(caller, peer.url, seconds=1000))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not caller._pool._idle.get(peer.url)
            task.cancel()
            await asyncio.wait({task})
            peer.lines[0].writer.transport.resume_reading()
            await peer.lines[0].ended.wait()
            assert len(peer.lines) == 1

    run(main())


def test_a_call_that_is_cancelled_as_its_answer_comes_leaves_the_next_one_alone():
    """The connection serves another call by the time that the cancelled one wakes."""

    async def main():
        async with callee() as peer, calling() as caller:
            await call(caller, peer.url)
            keep, seconds = caller._pool.keep, []

            def kept(connection):
                keep(connection)
                if not seconds:  # in the very moment: the first call has its outcome, but has not run on with it
                    first.cancel()
                    taken = caller._pool.take(peer.url, asyncio.get_running_loop().time())
                    seconds.append(taken.ask(b"GET / HTTP/1.1\r\n\r\n", b"", asyncio.get_running_loop().time() + 10))

            caller._pool.keep = kept
            first = asyncio.create_task(call(caller, peer.url))
            await asyncio.wait({first})
            assert first.cancelled()
            assert await seconds[0] == 200
            assert len(peer.lines) == 1

    run(main())
