"""Where a store is, and the driver's clients that go there: none of them ever repeats a command (S7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import redis as blocking
from redis import asyncio as aio, sentinel as blocking_sentinel
from redis.asyncio import sentinel as aio_sentinel
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

CONNECT_TIMEOUT = 5.0
READ_SIZE = 262_144  # bytes: a claim's answer in few pieces


@dataclass(frozen=True, slots=True)
class Address:
    """A server, a cluster (`cluster`), or sentinels and the service they watch (`sentinels`). `timeout` is in seconds."""

    url: str = field(repr=False)
    shown: str
    prefix: str | None = None
    cluster: bool = False
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    timeout: float = 10.0
    extra: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    def client(self) -> aio.Redis | aio.RedisCluster:
        """A client for the running loop. It never repeats a command: one that failed may have been carried out (S7).

        It waits for ever, and whoever uses it sets the bound: the driver's own is made with `asyncio.wait_for`, which on
        Python 3.11 may swallow a cancellation.
        """
        options = self._options(AsyncRetry(NoBackoff(), 0), None)
        if self.cluster:
            cluster = aio.RedisCluster.from_url(self.url, **options)
            cluster.commands_parser = _NoCommands()  # type: ignore[assignment]  # it has what a cluster's client calls here
            return cluster
        if self.sentinels:
            sentinel: Any = aio_sentinel.Sentinel  # untyped in the driver
            watch = sentinel(
                list(self.sentinels), sentinel_kwargs=self._to_sentinels(AsyncRetry(NoBackoff(), 0), None), **options
            )
            client: aio.Redis = watch.master_for(self.service)
            return client
        return aio.Redis.from_url(self.url, socket_read_size=READ_SIZE, **options)

    def blocking_client(self) -> blocking.Redis | blocking.RedisCluster:
        """The same for a thread without a loop."""
        options = self._options(Retry(NoBackoff(), 0), self.timeout)
        if self.cluster:
            return blocking.RedisCluster.from_url(self.url, **options)
        if self.sentinels:
            sentinel: Any = blocking_sentinel.Sentinel  # untyped in the driver
            watch = sentinel(
                list(self.sentinels), sentinel_kwargs=self._to_sentinels(Retry(NoBackoff(), 0), self.timeout), **options
            )
            client: blocking.Redis = watch.master_for(self.service)
            return client
        return blocking.Redis.from_url(self.url, **options)

    def node_client(self, host: str, port: int) -> aio.Redis:
        """A client for one node of the cluster, which hears what is published on any."""
        parts = urlsplit(self.url)
        user = parts.netloc.rpartition("@")[0]
        netloc = f"{user}@{host}:{port}" if user else f"{host}:{port}"
        return aio.Redis.from_url(urlunsplit(parts._replace(netloc=netloc)), **self._options(AsyncRetry(NoBackoff(), 0), None))

    def _options(self, retry: Any, timeout: float | None) -> dict[str, Any]:
        return {
            "retry": retry,
            "socket_timeout": timeout,
            "socket_connect_timeout": min(self.timeout, CONNECT_TIMEOUT),
            "decode_responses": True,
            "protocol": 2,
            **dict(self.extra),
        }

    def _to_sentinels(self, retry: Any, timeout: float | None) -> dict[str, Any]:
        options = self._options(retry, timeout)
        return {name: value for name, value in options.items() if name not in dict(self.extra)}


class _NoCommands:
    """In place of the commands that a cluster's client asks its first node for before all else: scripts name their keys.

    One node that hangs would keep every new client from the others.
    """

    async def initialize(self, node: object = None) -> None:
        """Ask nobody."""


async def close_client(client: aio.Redis | aio.RedisCluster) -> None:
    """Close the client, and those to the sentinels that told it where to go, which it leaves open."""
    await client.aclose()
    for sentinel in _sentinels(client):
        await sentinel.aclose()


def close_blocking_client(client: blocking.Redis | blocking.RedisCluster) -> None:
    """The same without a loop."""
    client.close()
    for sentinel in _sentinels(client):
        sentinel.close()


def descriptors(client: aio.Redis | aio.RedisCluster) -> list[int]:
    """The sockets that the client has open, as far as the driver lets it be seen."""
    nodes = client.get_nodes() if isinstance(client, aio.RedisCluster) else [client.connection_pool]
    nodes += [sentinel.connection_pool for sentinel in _sentinels(client)]
    kinds = ("_connections", "_available_connections", "_in_use_connections")
    found = [connection for node in nodes for kind in kinds for connection in getattr(node, kind, ())]
    return [number for connection in found if (number := descriptor(connection)) >= 0]


def descriptor(connection: object) -> int:
    """The socket of a connection, or -1 where it has none."""
    writer = getattr(connection, "_writer", None)
    socket = None if writer is None else writer.get_extra_info("socket")
    return -1 if socket is None else int(socket.fileno())


def _sentinels(client: object) -> list[Any]:
    watch = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    return [] if watch is None else list(watch.sentinels)
