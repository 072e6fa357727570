"""`treadle stats`: one aggregate over all jobs, short whatever their number (L6)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from treadle.cli.ages import iso, stamp
from treadle.cli.opening import with_operations
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out, encoded
from treadle.cli.printable import clipped, columns, printable
from treadle.cli.progress import Progress
from treadle.cli.states import colour_of
from treadle.core.policies.limits import MAX_NAME
from treadle.core.store import Stats
from treadle.engine.operations import Operations

MOST_BYTES = 2000  # L6 says under 2 KB, the line break included


@click.command("stats")
@json_option
@store_option
def command(as_json: bool) -> None:
    """Count jobs by state.

    Says when the next job is due, and which names have more than one pending copy: at most ten of them, and how
    many there are in all.
    """
    out = Out()

    async def counted(operations: Operations) -> Stats:
        async with Progress("Counting"):
            return await operations.stats()

    stats = with_operations(counted)
    if as_json:
        out.json(document(stats))
    else:
        _print(out, stats, datetime.now(UTC))
    out.flush()


def document(stats: Stats) -> dict[str, Any]:
    """The JSON of L6: names are cut, all alike and no more than needed, until it is short enough."""
    for longest in range(MAX_NAME, 0, -1):
        fitted = _document(stats, longest)
        if len(encoded(fitted)) < MOST_BYTES:
            return fitted
    return _document(stats, 1)


def _document(stats: Stats, longest: int) -> dict[str, Any]:
    return {
        **dict(_counts(stats)),
        "next_run_at": iso(stats.next_run_at),
        "duplicates": [
            {"name": name if len(name) <= longest else name[: longest - 1] + "…", "pending": pending}
            for name, pending in stats.duplicates.items()
        ],
        "duplicate_names": stats.duplicate_names,
    }


def _counts(stats: Stats) -> Iterator[tuple[str, int]]:
    yield "pending", stats.pending
    yield "running", stats.running
    yield "done", stats.done
    yield "dead", stats.dead


def _print(out: Out, stats: Stats, now: datetime) -> None:
    width = max(len(f"{number:,}") for _, number in _counts(stats))
    for state, number in _counts(stats):
        out.line(f"{out.styled(f'{state:<8}', colour_of(state) or 'bold')}  {number:>{width},}")
    if stats.next_run_at is not None:
        out.line(f"next due  {stamp(stats.next_run_at, now)}")
    if not stats.duplicates:
        return
    out.line()
    out.line(out.styled(f"Names with more than one pending job: {stats.duplicate_names:,}", "bold"))
    digits = max(len(f"{pending:,}") for pending in stats.duplicates.values())
    room = None if out.width is None else max(8, out.width - digits - 4)
    names = {
        name: printable(name) if room is None else clipped(printable(name), room, out.ellipsis) for name in stats.duplicates
    }
    longest = max(columns(name) for name in names.values())
    for name, pending in stats.duplicates.items():
        out.line(f"  {names[name]}{' ' * (longest - columns(names[name]))}  {pending:>{digits},}")
    if stats.duplicate_names > len(names):
        out.line(f"  and {stats.duplicate_names - len(names):,} more")
