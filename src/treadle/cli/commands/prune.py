"""`treadle prune`: delete jobs by age, or count what would be deleted (L5)."""

from __future__ import annotations

import click

from treadle.cli.durations import Duration
from treadle.cli.opening import with_operations
from treadle.cli.options import json_option, name_option, status_option, store_option
from treadle.cli.output import Out
from treadle.cli.progress import Progress
from treadle.core.filter import JobFilter
from treadle.core.job import FINISHED, State
from treadle.engine.operations import Operations, Pruned


@click.command("prune")
@click.option(
    "--older-than",
    type=Duration(),
    default="7d",
    show_default=True,
    metavar="AGE",
    help="Only jobs at least this old, such as 0s, 90m, 12h, 7d.",
)
@status_option("Only jobs that are pending, done or dead; may be repeated.  [default: done and dead]")
@name_option("Only jobs of this name; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Delete nothing; count by the same rule.")
@json_option
@store_option
@click.pass_context
def command(
    context: click.Context, older_than: float, states: tuple[str, ...], names: tuple[str, ...], dry_run: bool, as_json: bool
) -> None:
    """Delete old jobs.

    The age of done and dead jobs counts from their end, that of pending ones from their creation; 0s means all.
    """
    if State.RUNNING in states:
        raise click.BadParameter("running jobs cannot be deleted.", context, param_hint="'--status'")
    which = JobFilter(
        states=frozenset(State(state) for state in states) if states else FINISHED,
        names=frozenset(names) if names else None,
        older_than=older_than,
    )
    out = Out()

    async def pruned(operations: Operations) -> Pruned:
        async with Progress("Counting" if dry_run else "Deleting") as progress:
            if progress.wanted and not dry_run:
                progress.total = (await operations.prune(which, dry_run=True)).matched
            return await operations.prune(which, dry_run=dry_run, progress=progress.update)

    result = with_operations(pruned)
    if as_json:
        out.json({"dry_run": dry_run, "matched": result.matched, "deleted": result.deleted})
    elif dry_run:
        out.line(f"Would delete {result.matched} jobs (dry run, nothing deleted)")
    else:
        out.line(f"Deleted {result.deleted} jobs")
    out.flush()
