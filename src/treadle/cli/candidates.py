"""What a shell may complete from the store, where looking is cheap; nothing where it is not there (L9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import click

from treadle.cli.opening import with_operations
from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.engine.operations import Operations

SHOWN = 50


def waiting_names(context: click.Context) -> Sequence[str]:
    """The names of pending jobs."""
    return _asked(context, lambda operations: operations.pending_names())


def dead_ids(context: click.Context) -> Sequence[str]:
    """The ids of the newest dead jobs."""
    return _asked(context, lambda operations: _ids(operations, JobFilter(states=frozenset({State.DEAD}))))


def newest_ids(context: click.Context) -> Sequence[str]:
    """The ids of the newest jobs."""
    return _asked(context, lambda operations: _ids(operations, JobFilter()))


async def _ids(operations: Operations, which: JobFilter) -> Sequence[str]:
    return [job.id for job in await operations.list(which, SHOWN)]


def _asked(context: click.Context, ask: Callable[[Operations], Awaitable[Sequence[str]]]) -> Sequence[str]:
    """The answer, or nothing: completing must never print an error into the line that is being typed."""
    try:
        with context.scope(cleanup=False):
            return with_operations(ask)
    except Exception:
        return []
