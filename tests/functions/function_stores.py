"""Stores of every kind for the tests of the functions service: a place for each test, opened as often as it likes."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.servers import postgres, valkey

from treadle.core.store import Store
from treadle.engine.clock import EngineClock
from treadle.stores.memory import MemoryStore
from treadle.stores.postgres import PostgresStore
from treadle.stores.postgres.migrating import migrate
from treadle.stores.postgres.settings import settings
from treadle.stores.redis import RedisStore
from treadle.stores.sqlite import SQLiteStore
from treadle.testing import ManualClock

KINDS = ("memory", "sqlite", "postgres", "redis")


class Place:
    """Where the stores of one test are. A clock that stands still rules them, so that no test waits for a second to pass."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open = open_store
        self._stores: list[Store] = []
        self.time = ManualClock()
        self.clock = EngineClock(self.time)

    def store(self) -> Any:
        """One more store object on the same data, as another process would have it."""
        self._stores.append(self._open())
        return self._stores[-1]

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


def _migrated(url: str, schema: str) -> None:
    migrate(settings(url, {"schema": schema}))


@contextlib.contextmanager
def place(kind: str) -> Iterator[Place]:
    match kind:
        case "memory":
            one = MemoryStore()
            yield Place(lambda: one)
        case "sqlite":
            with tempfile.TemporaryDirectory() as folder:
                yield Place(lambda: SQLiteStore(f"{folder}/tasks.db"))
        case "postgres":
            server = postgres.shared_server()
            with server.schema(_migrated) as schema:
                yield Place(lambda: PostgresStore(server.url, schema=schema))
        case _:
            prefix = valkey.shared().fresh_prefix()
            yield Place(lambda: RedisStore(valkey.shared().url, prefix=prefix))


def run(kind: str, test: Callable[[Place], Awaitable[None]]) -> None:
    """Run a test on a new place of that kind."""

    async def whole(here: Place) -> None:
        try:
            await test(here)
        finally:
            await here.close()

    with place(kind) as here:
        asyncio.run(whole(here))


def on(*kinds: str) -> Callable[[Callable[[Place], Awaitable[None]]], Any]:
    """The test, once on a store of each of these kinds."""

    def decorate(test: Callable[[Place], Awaitable[None]]) -> Any:
        @pytest.mark.parametrize("kind", kinds)
        def each(kind: str) -> None:
            run(kind, test)

        each.__name__, each.__doc__, each.__module__ = test.__name__, test.__doc__, test.__module__
        return each

    return decorate


on_every_store = on(*KINDS)


def in_memory(test: Callable[[Place], Awaitable[None]]) -> Any:
    """The test, on the memory store alone: for what no store can change."""

    def once() -> None:
        run("memory", test)

    once.__name__, once.__doc__, once.__module__ = test.__name__, test.__doc__, test.__module__
    return once
