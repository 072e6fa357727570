"""`treadle list`: the jobs that match, newest first, streamed page by page (L3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from itertools import count

import click

from treadle.cli.ages import standing
from treadle.cli.document import job_document
from treadle.cli.opening import with_operations
from treadle.cli.options import json_option, name_option, status_option, store_option
from treadle.cli.output import Out
from treadle.cli.parameters import PlainInteger
from treadle.cli.progress import Progress
from treadle.cli.states import colour_of
from treadle.cli.streaming import print_json, print_table
from treadle.cli.table import Column
from treadle.core.filter import JobFilter
from treadle.core.job import Job, State
from treadle.engine.operations import Operations

COLUMNS = (
    Column("STATE", style=colour_of),
    Column("NAME", least=16, room=8),
    Column("WHEN", room=9, rank=4),
    Column("TRIES", right=True, rank=1),
    Column("QUEUE", rank=2),
    Column("ID", whole=True, rank=3, below=True),
    Column("ERROR", least=24, rank=0, below=True),
)


@click.command("list")
@status_option("Only jobs that are pending, running, done or dead; may be repeated.")
@name_option("Only jobs of this name; may be repeated.")
@click.option("--limit", type=PlainInteger(), metavar="K", help="At most this many jobs.")
@json_option
@store_option
def command(states: tuple[str, ...], names: tuple[str, ...], limit: int | None, as_json: bool) -> None:
    """List jobs, newest first.

    Without --limit everything that matches is listed, however much that is: it is read and printed page by page.
    """
    out = Out()
    which = JobFilter(
        states=frozenset(State(state) for state in states) if states else None,
        names=frozenset(names) if names else None,
    )

    async def printed(operations: Operations) -> None:
        async with Progress("Listing", wanted=not out.terminal) as progress:
            jobs = _counted(operations.iterate(which, limit), progress)
            if as_json:
                await print_json(out, jobs, job_document)
            else:
                await print_table(out, COLUMNS, jobs, partial(_row, now=datetime.now(UTC)), "No jobs.")

    with_operations(printed)
    out.flush()


async def _counted(jobs: AsyncIterator[Job], progress: Progress) -> AsyncIterator[Job]:
    numbers = count(1)
    async for job in jobs:
        progress.update(next(numbers))
        yield job


def _row(job: Job, now: datetime) -> list[str]:
    tries = f"{job.attempts}/{job.max_attempts}" if job.max_attempts is not None else str(job.attempts)
    queue = "" if job.queue == "default" else job.queue
    return [job.state.value, job.name, standing(job, now), tries, queue, job.id, " ".join((job.last_error or "").split())]
