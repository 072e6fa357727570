"""A URL that names the wrong kind of server is told in a line that says what to write instead (S7)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.servers import valkey

from treadle.core.errors import StoreError, StoreUnavailable
from treadle.core.filter import EVERYTHING
from treadle.core.job import NewJob
from treadle.stores.redis import RedisStore


def first_call(url: str) -> StoreError | None:
    """The error of a first call, if it fails."""

    async def run() -> StoreError | None:
        store = RedisStore(url, patience=0.1)
        try:
            await store.count(EVERYTHING)
        except StoreError as error:
            return error
        finally:
            await store.close()
        return None

    return asyncio.run(run())


def refusal(url: str) -> StoreError:
    error = first_call(url)
    assert error is not None
    assert "\n" not in str(error)
    assert "<" not in str(error)
    return error


@contextlib.contextmanager
def another_protocol() -> Iterator[int]:
    """The port of a server that answers as a web server does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(1000)
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def test_a_server_that_is_no_cluster(server: valkey.ValkeyServer) -> None:
    error = refusal(f"{server.url}?cluster=true")
    assert "leave cluster=true out" in str(error)
    assert not isinstance(error, StoreUnavailable)


def test_a_server_that_is_no_sentinel(server: valkey.ValkeyServer) -> None:
    assert "no sentinel" in str(refusal(f"redis+sentinel://127.0.0.1:{server.port}/treadle"))


def test_no_sentinel_at_all() -> None:
    assert isinstance(refusal(f"redis+sentinel://127.0.0.1:{valkey.free_port()}/treadle"), StoreUnavailable)


def test_a_server_that_is_no_redis() -> None:
    with another_protocol() as port:
        assert "does not answer as Redis does" in str(refusal(f"redis://127.0.0.1:{port}"))


def test_a_sentinel_that_is_taken_for_a_server() -> None:
    watch = f"sentinel monitor treadle 127.0.0.1 {valkey.free_port()} 1\n"
    sentinel = valkey.ValkeyServer(sentinel=watch)
    try:
        assert "redis+sentinel://" in str(refusal(sentinel.url))
    finally:
        sentinel.close()


@pytest.mark.slow
def test_a_cluster_named_as_one_server_and_a_cluster_that_is_away() -> None:
    """A listener that began while all nodes were away hears of jobs when they are back."""

    async def run() -> None:
        for node in cluster.nodes:
            await asyncio.to_thread(node.stop)
        store = RedisStore(cluster.url)
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        listener = await store.listen(lambda: loop.call_soon_threadsafe(woken.set))
        with pytest.raises(StoreUnavailable):
            await store.count(EVERYTHING)
        for node in cluster.nodes:
            await asyncio.to_thread(node.start)
        async with asyncio.timeout(30):
            await woken.wait()
            for number in range(10_000):
                with contextlib.suppress(StoreUnavailable):
                    await store.enqueue([NewJob(str(number), "a")])
                    break
        await listener.close()
        await store.close()

    cluster = valkey.ValkeyCluster()
    try:
        errors = [first_call(node.url) for node in cluster.nodes]
        assert errors.count(None) == 1, "all keys of a store are on one of the three"
        assert sum("add cluster=true" in str(error) for error in errors) == 2
        asyncio.run(run())
    finally:
        cluster.close()
