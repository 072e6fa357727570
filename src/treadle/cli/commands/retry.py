"""`treadle retry`: send dead jobs round again, each by the rule of its queue (L4, E17)."""

from __future__ import annotations

from dataclasses import dataclass, field

import click

from treadle.cli.failures import tell
from treadle.cli.jobid import JobId
from treadle.cli.opening import with_operations
from treadle.cli.options import json_option, name_option, store_option
from treadle.cli.output import Out
from treadle.cli.progress import Progress
from treadle.core.errors import Conflict, NotFound
from treadle.core.filter import JobFilter
from treadle.engine.operations import Operations

SHOWN = 10


@dataclass(slots=True)
class Tally:
    """What became of each id."""

    revived: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


@click.command("retry")
@click.argument("ids", type=JobId("dead"), nargs=-1, metavar="[ID]...")
@click.option("--all-dead", is_flag=True, help="All dead jobs, instead of ids.")
@name_option("With --all-dead: only jobs of this name; may be repeated.")
@json_option
@store_option
@click.pass_context
def command(context: click.Context, ids: tuple[str, ...], all_dead: bool, names: tuple[str, ...], as_json: bool) -> int:
    """Send dead jobs round again.

    Jobs of the library and of plugins count their attempts from 0 again; a function's job gets one more try. A dead
    job whose dedupe key an unfinished job holds is dropped instead, and told.
    """
    if bool(ids) == all_dead:
        raise click.UsageError("Give ids of dead jobs, or --all-dead.", context)
    if names and not all_dead:
        raise click.UsageError("--name goes with --all-dead only.", context)
    out = Out()

    async def redriven(operations: Operations) -> Tally:
        return await (_all(operations, names) if all_dead else _each(operations, ids))

    tally = with_operations(redriven)
    if as_json:
        failed = [{"id": job_id, "error": error} for job_id, error in tally.failed.items()]
        out.json({"revived": tally.revived, "dropped": tally.dropped, "failed": failed})
    else:
        _print(out, tally)
    out.flush()
    for error in tally.failed.values():
        tell(error)
    return 1 if tally.failed else 0


async def _all(operations: Operations, names: tuple[str, ...]) -> Tally:
    which = JobFilter(names=frozenset(names) if names else None)
    async with Progress("Sending round again") as progress:
        done = await operations.redrive_all(which, progress.update)
    return Tally([*done.revived], [*done.dropped])


async def _each(operations: Operations, ids: tuple[str, ...]) -> Tally:
    tally = Tally()
    async with Progress("Sending round again") as progress:
        for number, job_id in enumerate(dict.fromkeys(ids), 1):
            try:
                done = await operations.redrive(job_id)
            except (NotFound, Conflict) as error:
                tally.failed[job_id] = str(error)
            else:
                tally.revived += done.revived
                tally.dropped += done.dropped
            progress.update(number)
    return tally


def _print(out: Out, tally: Tally) -> None:
    if tally.revived or not (tally.failed or tally.dropped):
        out.line(f"Sent {_jobs(len(tally.revived))} round again")
    if tally.dropped:
        out.line(f"Dropped {_jobs(len(tally.dropped))}, since an unfinished job holds the same dedupe key:")
        for job_id in tally.dropped[:SHOWN]:
            out.line(f"  {job_id}")
        if len(tally.dropped) > SHOWN:
            out.line(f"  and {len(tally.dropped) - SHOWN:,} more (--json names them all)")


def _jobs(number: int) -> str:
    return f"{number:,} job" if number == 1 else f"{number:,} jobs"
