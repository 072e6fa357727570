"""Looking at stored jobs and repairing them: the half of `Tasks` that runs nothing (E15, E17, E19, L5, L6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from treadle.core.errors import InvalidArgument
from treadle.core.filter import JobFilter
from treadle.core.job import Job, State
from treadle.core.policies.limits import checked_delay, checked_int
from treadle.core.store import Redriven, Stats
from treadle.engine.operations import Operations, Pruned
from treadle.engine.registry import Registry
from treadle.tasks.profile import PRUNE_AFTER


class Inspection:
    """What can be asked of, and done to, the jobs of the store."""

    _operations: Operations
    _registry: Registry

    def _own_queues(self) -> Sequence[str] | None:
        """The queues that this worker is restricted to, None for all of the library's."""
        raise NotImplementedError

    async def get(self, id: str) -> Job | None:
        """The job with its failures, or None if there is none of that id (E15)."""
        return await self._operations.get(_checked_id(id))

    async def list(
        self,
        states: Iterable[State | str] | None = None,
        name: str | None = None,
        queue: str | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """The jobs that match, newest first, with their failures; all of them without a `limit`."""
        return [*await self._operations.list(_filter(states, name, queue), _limit(limit))]

    async def iterate(
        self, states: Iterable[State | str] | None = None, name: str | None = None, queue: str | None = None
    ) -> AsyncIterator[Job]:
        """`list` for any number of jobs, read page by page."""
        async for job in self._operations.iterate(_filter(states, name, queue)):
            yield job

    async def retry(self, id: str | None = None, *, all_dead: bool = False, name: str | None = None) -> Redriven:
        """Send one dead letter round again, or with `all_dead=True` all of them, or those of a `name`; counts start at 0 (E17).

        A dead letter whose dedupe key an unfinished job holds is dropped, and answered as such. Raises `NotFound`, or
        `Conflict` for a job that is not dead.
        """
        if (id is None) == (not all_dead):
            raise InvalidArgument("retry takes the id of a dead job, or all_dead=True")
        if id is not None and name is not None:
            raise InvalidArgument("retry takes a name only with all_dead=True; an id says which job")
        if id is not None:
            return await self._operations.redrive(_checked_id(id))
        return await self._operations.redrive_all(_filter(None, name, None))

    async def run_now(self, id: str) -> None:
        """Make a pending job due now (E2). Raises `NotFound`, or `Conflict` for a job that is not pending."""
        await self._operations.run_now(_checked_id(id))

    async def delete(self, id: str) -> None:
        """Delete a job that is not running (E2). Raises `NotFound`, or `Conflict` for a running one."""
        await self._operations.delete(_checked_id(id))

    async def prune(
        self,
        older_than: float | timedelta = PRUNE_AFTER,
        *,
        states: Iterable[State | str] = (State.DONE, State.DEAD),
        name: str | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Delete jobs that are older, by default done and dead ones of more than seven days (L5).

        A dry run deletes nothing and counts by the same predicate. Running jobs are never pruned.
        """
        which = _filter(states, name, None)
        if State.RUNNING in (which.states or ()):
            raise InvalidArgument("running jobs cannot be pruned; states may be pending, done and dead")
        age = checked_delay(older_than, "older_than")
        return await self._operations.prune(replace(which, older_than=age), dry_run=dry_run)

    async def stats(self) -> Stats:
        """Counts by state, the next due time, and names with more than one pending job (L6)."""
        return await self._operations.stats()

    async def pending_names(self) -> Sequence[str]:
        """The names of jobs that wait and that no handler is registered for here (E19)."""
        names = await self._operations.pending_names(self._own_queues())
        return [name for name in names if name not in self._registry]


def _checked_id(id: object) -> str:
    if not isinstance(id, str):
        raise InvalidArgument(f"a job id is text, not {type(id).__name__}")
    return id


def _filter(states: Iterable[State | str] | None, name: str | None, queue: str | None) -> JobFilter:
    return JobFilter(
        states=None if states is None else frozenset(_state(state) for state in _several(states)),
        names=None if name is None else frozenset({name}),
        queues=None if queue is None else frozenset({queue}),
    )


def _several(states: Iterable[State | str]) -> Sequence[State | str]:
    if isinstance(states, str):
        raise InvalidArgument(f"states must be a list, such as ['done'], not the text {states!r}")
    return list(states)


def _state(state: object) -> State:
    try:
        return State(state)  # type: ignore[arg-type]  # what is no state raises ValueError
    except ValueError:
        raise InvalidArgument(f"{state!r} is no state; states are {', '.join(State)}") from None


def _limit(limit: object) -> int | None:
    return None if limit is None else checked_int(limit, "limit", 1, 1 << 62)
