"""`treadle cron run`: enqueue a schedule's job now, beside its times (L10, T14)."""

from __future__ import annotations

import click

from treadle.cli.document import job_document
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.printable import printable
from treadle.cli.schedules import ScheduleName, with_schedules


@click.command("run")
@click.argument("name", type=ScheduleName())
@json_option
@store_option
def command(name: str, as_json: bool) -> None:
    """Enqueue a schedule's job now.

    Its times stay as they are, and a paused one stays paused. Refused while the last firing is unfinished.
    """
    enqueued = with_schedules(lambda schedules: schedules.run_now(name))
    out = Out()
    if as_json:
        out.json(job_document(enqueued.job))
    else:
        out.line(f"Enqueued {printable(enqueued.job.name)} {enqueued.id} for {printable(name)}")
    out.flush()
