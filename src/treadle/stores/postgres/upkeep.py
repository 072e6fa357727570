"""What operators and the pruner do to jobs at rest: send round again, run now, delete (E2, E17, E29)."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Operations in steps of a thousand, each a transaction of its own, so that none holds many rows for long.

    Others may change what a step has seen before it locks it. Then there is more to see, however little came of the step: all
    is done after one that sees fewer than it could and changes all of them.
    """

    async def redrive(
        self, which: JobFilter, policy: RedrivePolicy, *, limit: int | None = None, now: datetime | None = None
    ) -> Redriven:
        """Send dead letters round again; see `JobStore.redrive` (E17)."""
        revived: list[str] = []
        dropped: list[str] = []

        async def work(session: Session, _: bool) -> list[Row]:
            while True:
                try:
                    async with session.transaction():
                        found = await session.fetch(
                            "redrive", *parameters(which, now, _DEAD), step, None, policy is RedrivePolicy.RESET, patient=True
                        )
                        await _remove_failures(session, [job_id for _, alive, job_id in found if alive is False])
                        return found
                except psycopg.errors.UniqueViolation:
                    continue  # a job with the key came in between; it is seen at the next look

        while step := _step(limit, len(revived) + len(dropped)):
            (seen, _, _), *found = await self._runner.run(work, again=False)
            for _, alive, job_id in found:
                (revived if alive else dropped).append(job_id)
            if len(found) == seen < step:
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

        async def work(session: Session, _: bool) -> Row:
            async with session.transaction():
                [found] = await session.fetch("delete", *parameters(which, now, _AT_REST), step, None, patient=True)
                await _remove_failures(session, found[2])
            return found

        while step := _step(limit, number):
            seen, gone, _ = await self._runner.run(work, again=False)
            number += int(gone)
            if gone == seen < step:
                break
        return number


def _step(limit: int | None, done: int) -> int:
    return STEP if limit is None else max(0, min(STEP, limit - done))


async def _remove_failures(session: Session, ids: Sequence[str] | None) -> None:
    """Take out what was recorded of jobs that this transaction has deleted."""
    if ids:
        await session.fetch("remove_failures", ids, patient=True)
