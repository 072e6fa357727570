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
            return aio.RedisCluster.from_url(self.url, **options)
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


def _sentinels(client: object) -> list[Any]:
    watch = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    return [] if watch is None else list(watch.sentinels)
