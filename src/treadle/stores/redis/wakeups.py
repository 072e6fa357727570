"""Wake-ups: a subscription that is kept up, so that idle workers hear of jobs at once; polling stays the safety net (E26)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import Any

from redis import asyncio as aio
from redis.exceptions import RedisClusterException, RedisError

from treadle.stores import forks
from treadle.stores.redis.abandoning import abandon
from treadle.stores.redis.address import Address, close_client, descriptor

_logger = logging.getLogger("treadle")
SILENCE = 5.0  # seconds without a message until the server is asked for a sign of life, and again until it is given up
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0


class Subscription:
    """Calls `wake` at each message, and after each reconnection, since messages may have been missed before it."""

    def __init__(self, address: Address, channel: str, wake: Callable[[], None], silence: float = SILENCE) -> None:
        self._address = address
        self._channel = channel
        self._wake = wake
        self._silence = silence
        self._tried = asyncio.Event()
        self._connection: object = None
        self.reconnections = 0
        self._task: asyncio.Task[None] | None = asyncio.get_running_loop().create_task(self._run())
        forks.watch(self)

    async def begun(self) -> None:
        """Wait until it listens, or has failed to at first and goes on trying."""
        await self._tried.wait()

    async def close(self) -> None:
        """End it; safe twice."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def leave(self) -> None:
        """In the child of a fork: it is the parent that listens (see stores/forks.py)."""
        forks.detach(number for number in [descriptor(self._connection)] if number >= 0)
        abandon(self._task)
        self._task = None

    async def _run(self) -> None:
        failures = 0
        while True:
            listening = False
            try:
                async with _connection(self._address, self._channel, failures) as connection:
                    async with asyncio.timeout(self._address.timeout):
                        await connection.send_command("SUBSCRIBE", self._channel)
                        await connection.read_response()
                    listening, failures, self._connection = True, 0, connection
                    self._tried.set()
                    self._tell()
                    await self._listen(connection)
            except (RedisError, RedisClusterException, OSError, TimeoutError) as error:
                if failures == 0:
                    _logger.debug("the wake-ups of Redis at %s stopped, connecting again: %s", self._address.shown, error)
            finally:
                self._tried.set()
            pause = 0.0 if listening else min(FIRST_PAUSE * 2 ** min(failures, 10), LONGEST_PAUSE)
            failures += 1
            self.reconnections += 1
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311  spreads the clients, guards nothing

    async def _listen(self, connection: Any) -> None:
        """Until the connection breaks, or the server is silent even when asked."""
        asked = False
        while True:
            message = await connection.read_response(timeout=self._silence)
            if message is not None:
                asked = False
                if message[0] == "message":
                    self._tell()
            elif asked:
                return
            else:
                await connection.send_command("PING")
                asked = True

    def _tell(self) -> None:
        try:
            self._wake()
        except Exception:  # its event loop has ended, say: what it is told is a hint, and the job is stored
            _logger.debug("a listener failed to be woken", exc_info=True)


@contextlib.asynccontextmanager
async def _connection(address: Address, channel: str, failures: int) -> Any:
    """A connection of its own; in a cluster to the node that has the store, and after failures to the others in turn."""
    async with contextlib.AsyncExitStack() as stack:
        client = address.client()
        stack.push_async_callback(close_client, client)
        if isinstance(client, aio.RedisCluster):
            async with asyncio.timeout(address.timeout):
                await client.initialize()
            nodes = client.get_primaries()
            node = (client.get_node_from_key(channel) if failures == 0 else None) or nodes[failures % len(nodes)]
            client = address.node_client(str(node.host), int(node.port))
            stack.push_async_callback(close_client, client)
        async with asyncio.timeout(address.timeout):
            connection = await client.connection_pool.get_connection()  # type: ignore[no-untyped-call]  # as in home.py
        stack.push_async_callback(client.connection_pool.release, connection)
        stack.push_async_callback(connection.disconnect, nowait=True)
        yield connection
