"""Renewing leases from a thread of the worker's, over a blocking connection of its own (E20)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from treadle.core.store import Claim
from treadle.stores.postgres import rows
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import lost, mapped, undone, unreachable
from treadle.stores.postgres.moving import held_of, possible_claims
from treadle.stores.postgres.session import cut
from treadle.stores.postgres.settings import Settings
from treadle.stores.postgres.statements import statements

ANSWER = 5.0  # seconds that the server has for a renewal; there is time for another try within any sensible lease

_OWN_SERVER = (
    b"set statement_timeout = '5s'; set plan_cache_mode = force_generic_plan; set jit = off; "
    b"set enable_seqscan = off; set enable_bitmapscan = off"
)


class PostgresLeaseKeeper:
    """A keeper connects at its first renewal, and again whenever its connection was lost."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sql = statements(settings.schema)["renew"].encode()
        self._connection: psycopg.Connection[Any] | None = None

    def renew(self, claims: Sequence[Claim], lease: float, now: datetime | None = None) -> set[Claim]:
        """As `JobStore.renew`, blocking. Raises `StoreUnavailable` where the server cannot be reached."""
        able = possible_claims(dict.fromkeys(claims))
        if not able:
            return set()
        parameters = (now, [claim.id for claim in able], [claim.token for claim in able], rows.bounded(lease))
        tries = 0
        while True:
            fresh = self._connection is None
            connection = self._connection or self._connect()
            timer = threading.Timer(ANSWER, cut, [connection.pgconn])
            timer.daemon = True
            timer.start()
            try:
                return held_of(psycopg.RawCursor(connection).execute(self._sql, parameters, binary=True).fetchall(), able)
            except psycopg.Error as error:
                tries += 1
                # A connection that had been idle may have died long ago; a fresh one tells how the server is.
                if tries < 4 and (undone(error) or (lost(error) and not fresh)):
                    if lost(error):
                        self.close()
                    continue
                self.close()
                raise mapped(error, self._settings.schema) from error
            finally:
                timer.cancel()

    def close(self) -> None:
        """Give the connection up; safe twice, and a later renewal connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> psycopg.Connection[Any]:
        settings = self._settings
        try:
            connection = psycopg.connect(
                "",
                autocommit=True,
                prepare_threshold=0 if settings.prepared_statements else None,
                **settings.conninfo,  # type: ignore[arg-type]  # parameters of libpq, by name
            )
        except (psycopg.Error, OSError) as error:
            raise unreachable(settings.place, error) from None
        self._connection = connection
        if settings.prepared_statements:  # behind a pooler a setting would stay for others
            try:
                connection.execute(_OWN_SERVER, prepare=False)
            except psycopg.Error as error:
                self.close()
                raise mapped(error, settings.schema) from error
        return connection
