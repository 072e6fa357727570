"""What operators do to jobs that do not run: send round again, run now, delete (E2, E17, E29)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Redriven
from treadle.stores.redis import wire
from treadle.stores.redis.link import Link
from treadle.stores.redis.moment import present
from treadle.stores.redis.walk import Walk

NO_LIMIT = 1 << 53  # the largest number of which Lua knows each


class Upkeep:
    """The part of the store that changes jobs at rest, in steps of 500."""

    _link: Link
    _walk: Walk

    async def redrive(
        self, which: JobFilter, policy: RedrivePolicy, *, limit: int | None = None, now: datetime | None = None
    ) -> Redriven:
        """Send dead letters round again; see `JobStore.redrive` (E17)."""
        which = _narrowed(which, State.DEAD)
        revived: list[str] = []
        dropped: list[str] = []
        reset = int(policy is RedrivePolicy.RESET)
        async for ids in self._walk.pages(which, limit=limit, now=now):
            most = NO_LIMIT if limit is None else limit - len(revived) - len(dropped)
            if most <= 0:
                break
            again, gone = await self._step("redrive", which, now, reset, most, *wire.listed(ids))
            revived += again
            dropped += gone
        return Redriven(revived, dropped)

    async def run_now(self, which: JobFilter, *, now: datetime | None = None) -> int:
        """Make pending jobs due now; see `JobStore.run_now` (E2)."""
        which = _narrowed(which, State.PENDING)
        hurried = 0
        async for ids in self._walk.pages(which, now=now):
            hurried += await self._step("run_now", which, now, *wire.listed(ids))
        return hurried

    async def delete(self, which: JobFilter, *, limit: int | None = None, now: datetime | None = None) -> int:
        """Delete jobs that do not run; see `JobStore.delete` (E2, E29)."""
        which = _narrowed(which, State.PENDING, State.DONE, State.DEAD)
        deleted = 0
        async for ids in self._walk.pages(which, limit=limit, ordered=limit is not None, now=now):
            most = NO_LIMIT if limit is None else limit - deleted
            if most <= 0:
                break
            deleted += await self._step("delete", which, now, most, *wire.listed(ids))
        return deleted

    async def _step(self, script: str, which: JobFilter, now: datetime | None, *arguments: wire.Argument) -> Any:
        return await self._link.call(script, present(now), *wire.predicate(which), *arguments)


def _narrowed(which: JobFilter, *states: State) -> JobFilter:
    wanted = frozenset(states)
    return replace(which, states=wanted if which.states is None else which.states & wanted)
