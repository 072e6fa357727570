"""The Postgres store: the contract of `core/store.py` on a server (S6)."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable

from treadle.core.store import Listener
from treadle.stores.postgres.documents import PostgresDocuments
from treadle.stores.postgres.end_of_move import EndOfMove
from treadle.stores.postgres.floors import FloorsOfDemands
from treadle.stores.postgres.intervals import Intervals
from treadle.stores.postgres.keeper import PostgresLeaseKeeper
from treadle.stores.postgres.migrating import migrate
from treadle.stores.postgres.moving import Moving
from treadle.stores.postgres.reading import Reading
from treadle.stores.postgres.runner import Runner
from treadle.stores.postgres.schedules import Schedules
from treadle.stores.postgres.settings import settings
from treadle.stores.postgres.transactional import Transactional
from treadle.stores.postgres.upkeep import Upkeep
from treadle.stores.postgres.wakeups import Ears


class PostgresStore(Moving, Upkeep, Intervals, Schedules, Reading, PostgresDocuments, Transactional, EndOfMove):
    """Jobs on a Postgres server, version 15 or later, in a schema of their own.

    It opens at first use, with a few connections for each event loop that uses it, and may be used from any thread and loop.
    """

    def __init__(
        self,
        url: str,
        *,
        migrate: bool | None = None,
        listen: bool | None = None,
        notify: bool | None = None,
        prepared_statements: bool | None = None,
        direct_url: str | None = None,
        schema: str | None = None,
        pool_size: int | None = None,
        connect_timeout: float | None = None,
        answer_timeout: float | None = None,
    ) -> None:
        """Each option may stand in the URL's query too, as `?listen=off&prepared_statements=off`.

        `migrate` makes or updates the tables at first use (off). `listen` waits for NOTIFY, else the store only polls (on);
        `notify` sends it, for other processes too (on). `prepared_statements` is to be off behind a pooler that works by
        transaction, as pgbouncer does, and `listen` too, unless `direct_url` leads past the pooler for LISTEN alone. `schema`
        holds the tables ("treadle"). `pool_size` bounds the connections of each event loop (8). `connect_timeout` is how many
        seconds a connection may take (5), `answer_timeout` when an answer that does not come is looked into (15). What
        else the URL has goes to the driver. Raises `InvalidArgument`, and `MissingExtra` without the driver.
        """
        options = {
            "migrate": migrate,
            "listen": listen,
            "notify": notify,
            "prepared_statements": prepared_statements,
            "direct_url": direct_url,
            "schema": schema,
            "pool_size": pool_size,
            "connect_timeout": connect_timeout,
            "answer_timeout": answer_timeout,
        }
        self._runner = Runner(settings(url, options))
        self._ears = Ears(self._runner.settings, self._runner.processes)
        self._floors = FloorsOfDemands()
        weakref.finalize(self, _abandon, self._runner, self._ears)

    def __repr__(self) -> str:
        return f"PostgresStore({self._runner.settings.place}, schema={self._runner.settings.schema!r})"

    @property
    def waiting_at_most(self) -> int:
        """Half of the connections of an event loop; see `KeysWait`."""
        return max(1, self._runner.settings.pool_size // 2)

    async def migrate(self) -> str:
        """Bring the tables up to date, from many processes at once if need be (S4)."""
        return await asyncio.to_thread(migrate, self._runner.settings)

    def lease_keeper(self) -> PostgresLeaseKeeper:
        """A keeper with a blocking connection of its own (E20)."""
        return PostgresLeaseKeeper(self._runner.settings)

    async def listen(self, wake: Callable[[], None]) -> Listener:
        """Call `wake` when jobs may have become claimable: at once for those of this store, by NOTIFY for others (E26).

        Comes back when the server listens, or could not be reached, which is tried again behind the scenes.
        """
        subscription, tried = self._ears.add(wake)
        if tried is not None and not tried.is_set():
            await asyncio.to_thread(tried.wait, self._runner.settings.connect_timeout + 1.0)
        return subscription

    async def close(self) -> None:
        """Give up connections and threads; safe twice, and a later use opens the store again."""
        await self._ears.closed()
        await self._runner.close()


def _abandon(runner: Runner, ears: Ears) -> None:
    """A store that nobody closed is gone: so are its connections."""
    ears.close()
    runner.abandon()
