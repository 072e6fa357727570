"""Renewing leases from a thread of the worker's, over a blocking connection of its own (E20)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from treadle.core.store import Claim
from treadle.stores import forks
from treadle.stores.postgres import rows
from treadle.stores.postgres.connecting import connected
from treadle.stores.postgres.cutting import cut_after
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import lost, mapped, undone
from treadle.stores.postgres.leaving import leave
from treadle.stores.postgres.moving import held_of, possible_claims
from treadle.stores.postgres.session import OWN_SERVER
from treadle.stores.postgres.settings import Settings
from treadle.stores.postgres.statements import statements

ANSWER = 5.0  # seconds that the server has for a renewal; there is time for another try within any sensible lease

_OWN_SERVER = OWN_SERVER + b"; set statement_timeout = '5s'"


class PostgresLeaseKeeper:
    """A keeper connects at its first renewal, and again whenever its connection was lost."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sql = statements(settings.schema)["renew"].encode()
        self._connection: psycopg.Connection[Any] | None = None
        forks.watch(self)

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
            try:
                with cut_after(ANSWER, connection):
                    found = psycopg.RawCursor(connection).execute(self._sql, parameters, binary=True).fetchall()
                return held_of(found, able)
            except psycopg.Error as error:
                tries += 1
                # A connection that had been idle may have died long ago; a fresh one tells how the server is.
                if tries < 4 and (undone(error) or (lost(error) and not fresh)):
                    if lost(error):
                        self.close()
                    continue
                self.close()
                raise mapped(error, self._settings.schema) from error

    def close(self) -> None:
        """Give the connection up; safe twice, and a later renewal connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def leave(self) -> None:
        """In the child of a fork: the connection is the parent's (see stores/forks.py)."""
        if self._connection is not None:
            leave(self._connection, idle=False)
            self._connection = None

    def _connect(self) -> psycopg.Connection[Any]:
        settings = self._settings
        self._connection = connection = connected(settings, prepared=settings.prepared_statements)
        if settings.prepared_statements:  # behind a pooler a setting would stay for others
            try:
                with cut_after(ANSWER, connection):
                    connection.execute(_OWN_SERVER, prepare=False)
            except psycopg.Error as error:
                self.close()
                raise mapped(error, settings.schema) from error
        return connection
