"""The part of the store that moves between stores take part in (S13)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from treadle.core.errors import SchemaMissing, SchemaTooNew
from treadle.core.job import Job
from treadle.core.transfer import Cargo, Counts, KeptDocument, KeptInterval, Mark
from treadle.stores.sqlite import fencing, moves
from treadle.stores.sqlite.connection import Connection
from treadle.stores.sqlite.faults import store_error
from treadle.stores.sqlite.migrating import version
from treadle.stores.sqlite.moments import present
from treadle.stores.sqlite.opening import Options
from treadle.stores.sqlite.statements import migrations


class EndOfMove:
    """What `Transfer` asks of a store."""

    _options: Options
    _connection: Connection

    async def founded(self) -> bool:
        """Whether the file has the tables; makes neither. Raises `SchemaMissing` for older ones, `SchemaTooNew` for newer."""
        if self._options.in_memory:
            return True
        path, newest = self._options.path, len(migrations())
        found = await asyncio.to_thread(_version_in, path)
        if found > newest:
            raise SchemaTooNew(
                f"the tables in {path} have schema version {found}, and this treadle knows up to {newest}; upgrade it"
            )
        if 0 < found < newest:
            raise SchemaMissing(f"the tables in {path} have schema version {found}, not {newest}; run `treadle migrate` first")
        return found == newest

    async def get_mark(self) -> Mark | None:
        """The mark; see `Transfer.get_mark`."""
        return await self._connection.read(fencing.mark)

    async def put_mark(self, mark: Mark | None, *, expect: Mark | None) -> bool:
        """Replace the mark in one transaction with its triggers; see `Transfer.put_mark`."""
        return await self._connection.write(lambda session: moves.put_mark(session, mark, expect))

    async def kept(self) -> Counts:
        """How much there is beside jobs; see `Transfer.kept`."""
        return await self._connection.read(moves.kept)

    async def kept_intervals(self, *, after: str = "", limit: int = 1000) -> list[KeptInterval]:
        """Intervals in order; see `Transfer.kept_intervals`."""
        return await self._connection.read(lambda session: moves.kept_intervals(session, after, limit))

    async def kept_documents(self, *, after: tuple[str, str] | None = None, limit: int = 1000) -> list[KeptDocument]:
        """Documents of all namespaces; see `Transfer.kept_documents`."""
        return await self._connection.read(lambda session: moves.kept_documents(session, after, limit))

    async def taken(self, jobs: Sequence[Job]) -> dict[str, str]:
        """Who would be in the way; see `Transfer.taken`."""
        return await self._connection.read(lambda session: moves.taken(session, jobs))

    async def restore(self, cargo: Cargo, *, expect: Mark, now: datetime | None = None) -> None:
        """Put everything in as it was, in one transaction; see `Transfer.restore`."""
        await self._connection.write(lambda session: moves.restore(session, cargo, expect, present(now)))

    async def remove(self, cargo: Cargo, *, expect: Mark) -> None:
        """Take everything out, in one transaction; see `Transfer.remove`."""
        await self._connection.write(lambda session: moves.take_out(session, cargo, expect))


def _version_in(path: str) -> int:
    if not Path(path).exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
            return version(connection)
    except sqlite3.Error as error:
        raise store_error(error, path) from error
