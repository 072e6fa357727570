"""What a shell may complete from the store, where looking is cheap; nothing where it is not there (L9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from treadle.cli.opening import with_operations, with_store
from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.core.store import Store
from treadle.engine.operations import Operations

SHOWN = 50


def waiting_names(context: click.Context) -> Sequence[str]:
    """The names of pending jobs."""
    return _asked(context, lambda: with_operations(lambda operations: operations.pending_names()))


def dead_ids(context: click.Context) -> Sequence[str]:
    """The ids of the newest dead jobs."""
    return _asked(context, lambda: with_operations(lambda one: _ids(one, JobFilter(states=frozenset({State.DEAD})))))


def newest_ids(context: click.Context) -> Sequence[str]:
    """The ids of the newest jobs."""
    return _asked(context, lambda: with_operations(lambda operations: _ids(operations, JobFilter())))


def schedule_names(context: click.Context, prefix: str) -> Sequence[str]:
    """The names of schedules that begin so."""
    return _asked(context, lambda: with_store(lambda store: _names(store, prefix)))


async def _ids(operations: Operations, which: JobFilter) -> Sequence[str]:
    return [job.id for job in await operations.list(which, SHOWN)]


async def _names(store: Store, prefix: str) -> Sequence[str]:
    return [schedule.name for schedule in await store.list_schedules(prefix=prefix, limit=SHOWN)]


def _asked(context: click.Context, ask: Callable[[], Sequence[str]]) -> Sequence[str]:
    """The answer, or nothing: completing must never print an error into the line that is being typed."""
    try:
        with context.scope(cleanup=False):
            return ask()
    except Exception:
        return []
