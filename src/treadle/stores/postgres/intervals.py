"""What keeps intervals going (IntervalStore, T1 to T4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from treadle.core.clock import from_micros
from treadle.core.job import Enqueued, NewJob
from treadle.core.schedule import Interval
from treadle.stores.postgres import rows
from treadle.stores.postgres.moving import stored
from treadle.stores.postgres.part import Part
from treadle.stores.postgres.session import Session
from treadle.stores.postgres.templates import job_of, text_of


class Intervals(Part):
    """Registrations of intervals, and their copies put back."""

    async def ensure(self, intervals: Sequence[tuple[Interval, str]], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Remember intervals and put their copies back; see `IntervalStore.ensure` (T1 to T4)."""
        if not intervals:
            return []
        schedules = [interval.schedule for interval, _ in intervals]

        async def work(session: Session, repeated: bool) -> list[Enqueued | None]:
            async with session.transaction():
                due = {row[0]: row[3] for row in await session.fetch("intervals", rows.possible(schedules))}
                copies = [_copy(interval, job_id, due.get(interval.schedule)) for interval, job_id in intervals]
                answers = await stored(session, copies, now, repeated=repeated)
                await session.fetch(
                    "register",
                    schedules,
                    [interval.seconds for interval, _ in intervals],
                    [text_of(interval.job) for interval, _ in intervals],
                    [one.job.run_at.isoformat() if one.created else None for one in answers],
                    patient=True,
                )
            return [one if one.created else None for one in answers]

        made = await self._runner.run(work, again=True)
        if any(one is not None for one in made):
            self._arrived()
        return made

    async def intervals(self, schedules: Sequence[str]) -> list[Interval]:
        """The remembered intervals of these schedule names."""
        found = await self._read("intervals", rows.possible(tuple(schedules)))
        kept = {row[0]: Interval(row[1], job_of(row[2])) for row in found}
        return [kept[schedule] for schedule in schedules if schedule in kept]


def _copy(interval: Interval, job_id: str, due: int | None) -> NewJob:
    """The copy that is put back: due when the last one was, a first one now."""
    return replace(interval.job, id=job_id, delay=0.0, run_at=None if due is None else from_micros(due))
