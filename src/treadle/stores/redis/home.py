"""The client of one event loop, which ends with it; connecting is all that it repeats (S7)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from redis import asyncio as aio
from redis.exceptions import (
    AuthenticationError,
    ConnectionError as Disconnected,
    NoScriptError,
    ReadOnlyError,
    ResponseError,
    TimeoutError as TooSlow,
)

from treadle.stores.redis.address import Address, close_client
from treadle.stores.redis.pack import packed
from treadle.stores.redis.script import Script
from treadle.stores.redis.wire import Argument

CALLS_AT_ONCE = 32
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5


class Home:
    """The client of one event loop."""

    def __init__(self, address: Address, patience: float) -> None:
        self.client = address.client()
        self.slots = asyncio.Semaphore(CALLS_AT_ONCE)
        self.opening = asyncio.Lock()
        self.opened = False
        self._patience = patience
        self._timeout = address.timeout
        self._life: AsyncGenerator[None, None] | None = None

    async def begin(self) -> None:
        """Have the client closed when its loop ends: a loop closes the generators that began on it, and nothing else."""
        if self._life is None:
            self._life = _until_closed(self.client)
            await anext(self._life)

    async def close(self) -> None:
        """Close the client."""
        if self._life is not None:
            await self._life.aclose()

    async def run(self, script: Script, tag: str, arguments: Sequence[Argument], sent: Callable[[], None]) -> Any:
        """Call the script by its digest, or by its text where the server has not seen it since it started."""
        try:
            return await self._command("EVALSHA", script.digest, 1, tag, *arguments, sent=sent)
        except NoScriptError:
            return await self._command("EVAL", script.source, 1, tag, *arguments)

    async def about_the_server(self, tag: str) -> Mapping[str, str]:
        """What INFO says, of a cluster's nodes the one that has the store; nothing where this client may not ask."""
        try:
            if isinstance(self.client, aio.RedisCluster):
                node = self.client.get_node_from_key(tag)
                assert node is not None  # None is for replicas
                async with self._bounded():
                    text = await node.execute_command("INFO")
            else:
                text = await self._command("INFO")
        except Exception:  # a right that this client lacks, say; the first real call will tell what is wrong
            return {}
        if not isinstance(text, str):
            return {name: str(value) for name, value in dict(text).items()}
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    async def _command(self, *words: Argument, sent: Callable[[], None] = lambda: None) -> Any:
        client = self.client
        if isinstance(client, aio.RedisCluster):
            sent()
            async with self._bounded():
                await client.initialize()  # not knowing the slots yet, it would send the command to any node
                return await client.execute_command(*words)
        # Not execute_command: connecting may be repeated and a command may not, so the two are taken apart here.
        pool = client.connection_pool
        connection = await self._connection(pool)
        try:
            async with self._bounded():
                await connection.send_packed_command(packed(connection, words))
                sent()
                return await connection.read_response()
        except ResponseError as error:
            # A primary no longer: whoever connects anew finds out where it is now. Older servers put it in other words.
            if isinstance(error, ReadOnlyError) or "READONLY" in str(error):
                await connection.disconnect()
            raise
        finally:
            await pool.release(connection)

    async def _connection(self, pool: aio.ConnectionPool) -> Any:
        deadline = time.monotonic() + self._patience
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._bounded():
                    return await pool.get_connection()  # type: ignore[no-untyped-call]  # the driver types its decorators loosely
            except AuthenticationError:
                raise
            except (Disconnected, TooSlow, OSError):
                wait = pause * (0.5 + random.random())  # noqa: S311  spreads the clients, guards nothing
                if time.monotonic() + wait > deadline:
                    raise
            await asyncio.sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE)

    @contextlib.asynccontextmanager
    async def _bounded(self) -> AsyncIterator[None]:
        """The time that a step may take; a connection on which it runs out is closed, since its answer may still come."""
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except TimeoutError:
            raise TooSlow(f"no answer within {self._timeout:g} s") from None


async def _until_closed(client: aio.Redis | aio.RedisCluster) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await close_client(client)
