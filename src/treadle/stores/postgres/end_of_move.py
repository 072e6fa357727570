"""The part of the store that moves between stores take part in (S13)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from treadle.core.clock import from_micros
from treadle.core.errors import Conflict
from treadle.core.job import FINISHED, Job
from treadle.core.schedule import Interval
from treadle.core.transfer import Cargo, Counts, KeptDocument, KeptInterval, Mark, Stage, mark_of
from treadle.stores.postgres import migrating, rows
from treadle.stores.postgres.cargo import removing, restoring
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.part import Part
from treadle.stores.postgres.session import Session
from treadle.stores.postgres.statements import fence
from treadle.stores.postgres.templates import job_of

PATIENCE = "10s"  # that the mark waits for transactions under way, while whoever writes waits behind it


class EndOfMove(Part):
    """What `Transfer` asks of a store."""

    async def founded(self) -> bool:
        """Whether the tables are there; makes none; see `Transfer.founded`."""
        return await asyncio.to_thread(migrating.founded, self._runner.settings)

    async def get_mark(self) -> Mark | None:
        """The mark; see `Transfer.get_mark`."""
        return _mark(await self._read("mark_get"))

    async def put_mark(self, mark: Mark | None, *, expect: Mark | None) -> bool:
        """Replace the mark in one transaction with its triggers; see `Transfer.put_mark`.

        It waits for open transactions that have written, callers' own among them; `StoreUnavailable` where one stays too long.
        """
        schema = self._runner.settings.schema

        async def work(session: Session, repeated: bool) -> bool:
            async with session.transaction():
                await session.fetch("mark_wait", PATIENCE)
                closing = mark is not None and mark.fence is not None
                await session.script(fence("close_tables" if closing else "open_tables", schema))
                stored = _mark(await session.fetch("mark_get"))
                if stored != expect:
                    return repeated and stored == mark
                if mark is not None and mark.stage is Stage.SEALED and (await session.fetch("runs"))[0][0]:
                    return False
                if mark is None:
                    await session.fetch("mark_delete")
                else:
                    await session.fetch("mark_put", mark.text(), mark.fence)
                await session.script(_fences(mark, schema))
            return True

        put = await self._runner.run(work, again=True)
        self._arrived(None)  # whoever waits for the end of the move
        return put

    async def kept(self) -> Counts:
        """How much there is beside jobs; see `Transfer.kept`."""
        [(intervals, schedules, documents)] = await self._read("kept", patient=True)
        return Counts(intervals=intervals, schedules=schedules, documents=documents)

    async def kept_intervals(self, *, after: str = "", limit: int = 1000) -> list[KeptInterval]:
        """Intervals in order; see `Transfer.kept_intervals`."""
        return [
            KeptInterval(Interval(seconds, job_of(template)), None if due is None else from_micros(due))
            for seconds, template, due in await self._read("kept_intervals", after, limit)
        ]

    async def kept_documents(self, *, after: tuple[str, str] | None = None, limit: int = 1000) -> list[KeptDocument]:
        """Documents of all namespaces; see `Transfer.kept_documents`."""
        found = await self._read("kept_documents", *(after or ("", "")), limit, after is not None)
        return [KeptDocument(row[0], rows.document(row[1:])) for row in found]

    async def taken(self, jobs: Sequence[Job]) -> dict[str, str]:
        """Who would be in the way; see `Transfer.taken`."""
        keys = [job.key if job.key and (job.key.kind == "idempotency" or job.state not in FINISHED) else None for job in jobs]
        found = await self._read(
            "holders",
            [job.id for job in jobs],
            [job.name for job in jobs],
            [None if key is None else key.kind for key in keys],
            [None if key is None else key.text for key in keys],
        )
        return {jobs[row[0] - 1].id: row[1] for row in found}

    async def restore(self, cargo: Cargo, *, expect: Mark, now: datetime | None = None) -> None:
        """Put everything in as it was, in one transaction; see `Transfer.restore`."""
        statements = restoring(cargo)

        async def work(session: Session, _: bool) -> None:
            try:
                async with session.transaction():
                    await _begin(session, expect, self._runner.settings.schema)
                    for name, items in statements:
                        await session.fetch(name, items, patient=True)
            except psycopg.errors.UniqueViolation as error:
                raise Conflict(
                    f"a job cannot be stored here, since another one holds its key: {error.diag.message_detail}"
                ) from error

        await self._runner.run(work, again=True)

    async def remove(self, cargo: Cargo, *, expect: Mark) -> None:
        """Take everything out, in one transaction; see `Transfer.remove`."""

        async def work(session: Session, _: bool) -> None:
            async with session.transaction():
                await _begin(session, expect, self._runner.settings.schema)
                for name, columns in removing(cargo):
                    await session.fetch(name, *columns, patient=True)

        await self._runner.run(work, again=True)


async def _begin(session: Session, expect: Mark, schema: str) -> None:
    """Let the transaction through the fences, if the mark is still the one that the move knows."""
    await session.script(fence("hold_mark", schema))
    if _mark(await session.fetch("mark_get")) != expect:
        raise Conflict("the move has changed under way: is `treadle move` run twice?")
    await session.fetch("mover_on")


def _mark(found: Sequence[rows.Row]) -> Mark | None:
    return mark_of(found[0][0]) if found else None


def _fences(mark: Mark | None, schema: str) -> str:
    if mark is None or mark.fence is None:
        return fence("open", schema)
    message = "'" + mark.fence.replace("'", "''") + "'"
    return fence("draining" if mark.stage is Stage.DRAINING else "sealed", schema).replace("{message}", message)
