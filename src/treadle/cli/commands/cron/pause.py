"""`treadle cron pause`: stop a schedule from firing (L10, T14)."""

from __future__ import annotations

import click

from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.printable import printable
from treadle.cli.schedules import ScheduleName, schedule_document, with_schedules


@click.command("pause")
@click.argument("name", type=ScheduleName())
@json_option
@store_option
def command(name: str, as_json: bool) -> None:
    """Stop a schedule from firing.

    What it has enqueued stays. A paused schedule stays paused when a worker that registers it starts.
    """
    schedule = with_schedules(lambda schedules: schedules.pause(name))
    out = Out()
    if as_json:
        out.json(schedule_document(schedule))
    else:
        out.line(f"Paused {printable(name)}")
    out.flush()
