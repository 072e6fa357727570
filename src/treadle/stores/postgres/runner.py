"""Running work on the connections of whatever loop asks: the pools, the check of the tables, repeats, and errors made clear."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from treadle.core.errors import TreadleError
from treadle.stores import forks
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import lost, mapped, undone
from treadle.stores.postgres.migrating import check_version, migrate
from treadle.stores.postgres.notifier import Notifier
from treadle.stores.postgres.pool import Pool
from treadle.stores.postgres.session import Session
from treadle.stores.postgres.settings import Settings

T = TypeVar("T")

Work: TypeAlias = Callable[[Session, bool], Awaitable[T]]
"""What is done on a connection; True means that an earlier try was cut off after it may have taken effect."""

_ROLLBACKS = 5


class Runner:
    """The pools of a store by event loop, and the one way to use them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._pools: dict[asyncio.AbstractEventLoop, tuple[Pool, Notifier]] = {}
        self._checked = False
        forks.watch(self)

    async def run(self, work: Work[T], *, again: bool) -> T:
        """Do the work on a connection of this loop. `again`: it is repeated once on another one where the first broke under it.

        What the server rolled back for the sake of others, a deadlock say, is repeated in any case. Raises `StoreUnavailable`,
        `StoreFull`, `SchemaMissing` or another `TreadleError`, never an error of the driver.
        """
        await self.ready()
        pool, _ = self._of_this_loop()
        repeated, rollbacks = False, 0
        used: Session | None = None
        while True:
            try:
                async with pool.session() as session:
                    used = session
                    return await work(session, repeated)
            except psycopg.Error as error:
                if undone(error) and rollbacks < _ROLLBACKS:
                    rollbacks += 1
                elif lost(error) and again and not repeated:
                    repeated = True
                else:
                    if lost(error) and used is not None and not used.read_only:
                        with contextlib.suppress(TreadleError, psycopg.Error):
                            await pool.settle(used)
                    if isinstance(error, (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)):
                        self._checked = False
                    raise mapped(error, self.settings.schema) from error

    async def ready(self) -> None:
        """See once that the tables are those that this code knows, and make them so if the store may (S4)."""
        if self._checked:
            return
        pool, _ = self._of_this_loop()
        if self.settings.migrate:
            await asyncio.to_thread(migrate, self.settings)
        else:
            async with pool.session() as session:
                try:
                    rows = await session.fetch("version")
                    version = rows[0][0]
                except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                    version = None
                except psycopg.Error as error:
                    raise mapped(error, self.settings.schema) from error
            check_version(version, self.settings.schema)
        self._checked = True

    def ready_blocking(self) -> None:
        """As `ready`, without an event loop."""
        if not self._checked:
            migrate(self.settings, only_check=not self.settings.migrate)
            self._checked = True

    def tell(self) -> None:
        """Send a NOTIFY soon, from this loop, if the store is to send any (S6)."""
        if self.settings.notify:
            self._of_this_loop()[1].tell()

    def processes(self) -> set[int]:
        """The server processes of the open connections: what they notify of, this store knows already."""
        with self._lock:
            pools = [pool for pool, _ in self._pools.values()]
        return {process for pool in pools for process in pool.processes()}

    async def close(self) -> None:
        """Give up the connections of every loop; those in use when they come back."""
        with self._lock:
            pools, self._pools = self._pools, {}
            self._checked = False
        for loop, (pool, notifier) in pools.items():
            if loop is asyncio.get_running_loop():
                await notifier.flush()
            pool.close()

    def abandon(self) -> None:
        """Give up all connections without a loop, as at the end of the process."""
        with self._lock:
            pools, self._pools = self._pools, {}
        for pool, _ in pools.values():
            pool.close()

    def leave(self) -> None:
        """In the child of a fork: the pools are the parent's (see stores/forks.py)."""
        self._lock = threading.Lock()
        pools, self._pools = self._pools, {}
        for pool, _ in pools.values():
            pool.leave()

    def _of_this_loop(self) -> tuple[Pool, Notifier]:
        loop = asyncio.get_running_loop()
        found = self._pools.get(loop)
        if found is not None and not found[0].closed:
            return found
        with self._lock:
            for other in [other for other in self._pools if other.is_closed()]:
                self._pools.pop(other)[0].close()
            pool = Pool(self.settings)
            notifier = Notifier(pool, self.settings.channel)
            pool.at_end = notifier.flush
            self._pools[loop] = (pool, notifier)
            return self._pools[loop]
