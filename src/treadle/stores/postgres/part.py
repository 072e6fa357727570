"""What every part of the store has: the way to run statements, and the way to wake."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.job import Job
from treadle.stores.postgres.floors import FloorsOfDemands
from treadle.stores.postgres.rows import Row
from treadle.stores.postgres.runner import Runner
from treadle.stores.postgres.session import Session
from treadle.stores.postgres.wakeups import Ears


class Part:
    """A group of the store's operations; `PostgresStore` is all of them."""

    _runner: Runner
    _ears: Ears
    _floors: FloorsOfDemands

    async def _read(self, name: str, *parameters: object, patient: bool = False) -> Sequence[Row]:
        """The rows of one statement that may be repeated without harm."""

        async def work(session: Session, _: bool) -> Sequence[Row]:
            return await session.fetch(name, *parameters, patient=patient)

        return await self._runner.run(work, again=True)

    async def _write(self, name: str, *parameters: object) -> Sequence[Row]:
        """The rows of one statement that must not be repeated where its answer was lost."""

        async def work(session: Session, _: bool) -> Sequence[Row]:
            return await session.fetch(name, *parameters, patient=True)

        return await self._runner.run(work, again=False)

    def _arrived(self, jobs: Sequence[Job] | None = None) -> None:
        """Jobs may have become claimable, these or any: wake who listens here, and have the others told (E26)."""
        self._floors.arrived(jobs)
        self._ears.wake()
        self._runner.tell()
