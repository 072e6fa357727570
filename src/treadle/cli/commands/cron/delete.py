"""`treadle cron delete`: delete a schedule (L10, T14)."""

from __future__ import annotations

import click

from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.printable import printable
from treadle.cli.schedules import ScheduleName, with_schedules


@click.command("delete")
@click.argument("name", type=ScheduleName())
@json_option
@store_option
def command(name: str, as_json: bool) -> None:
    """Delete a schedule.

    Its jobs stay. A worker whose code registers it puts it back when it starts: take it out of the code first.
    """
    with_schedules(lambda schedules: schedules.delete(name))
    out = Out()
    if as_json:
        out.json({"deleted": name})
    else:
        out.line(f"Deleted {printable(name)}")
    out.flush()
