"""What operators and the pruner do to jobs at rest: send round again, run now, delete (E2, E17, E29)."""

from __future__ import annotations

from datetime import datetime

from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Redriven
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.part import Part
from treadle.stores.postgres.rows import Row
from treadle.stores.postgres.selection import parameters
from treadle.stores.postgres.session import Session

STEP = 1000

_DEAD = frozenset({State.DEAD})
_PENDING = frozenset({State.PENDING})
_AT_REST = frozenset({State.PENDING, State.DONE, State.DEAD})


class Upkeep(Part):
    """Operations in steps of a thousand, each a transaction of its own, so that none holds many rows for long."""

    async def redrive(
        self, which: JobFilter, policy: RedrivePolicy, *, limit: int | None = None, now: datetime | None = None
    ) -> Redriven:
        """Send dead letters round again; see `JobStore.redrive` (E17)."""
        revived: list[str] = []
        dropped: list[str] = []

        async def work(session: Session, _: bool) -> list[Row]:
            while True:
                try:
                    return await session.fetch(
                        "redrive", *parameters(which, now, _DEAD), step, None, policy is RedrivePolicy.RESET, patient=True
                    )
                except psycopg.errors.UniqueViolation:
                    continue  # a job with the key came in between; it is seen at the next look

        while step := _step(limit, len(revived) + len(dropped)):
            found = await self._runner.run(work, again=False)
            for job_id, alive in found:
                (revived if alive else dropped).append(job_id)
            if len(found) < step:
                break
        if revived:
            self._arrived()
        return Redriven(revived, dropped)

    async def run_now(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """Make pending jobs due now; see `JobStore.run_now` (E2)."""
        number, after = 0, None
        while True:
            [(hurried, after, seen)] = await self._write("run_now", *parameters(which, now, _PENDING), STEP, after)
            number += hurried
            if seen < STEP:
                break
        if number:
            self._arrived()
        return int(number)

    async def delete(self, which: JobFilter, *, limit: int | None = None, now: datetime | None = None) -> int:
        """Delete jobs at rest; see `JobStore.delete` (E2, E29).

        With an age, finished jobs go by the time of their end in steps, and by id within a step.
        """
        number = 0
        while step := _step(limit, number):
            [(gone,)] = await self._write("delete", *parameters(which, now, _AT_REST), step, None)
            number += int(gone)
            if gone < step:
                break
        return number


def _step(limit: int | None, done: int) -> int:
    return STEP if limit is None else max(0, min(STEP, limit - done))
