"""`treadle cron resume`: let a paused schedule fire again (L10, T10, T14)."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from treadle.cli.ages import stamp
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.printable import printable
from treadle.cli.schedules import ScheduleName, schedule_document, with_schedules


@click.command("resume")
@click.argument("name", type=ScheduleName())
@json_option
@store_option
def command(name: str, as_json: bool) -> None:
    """Let a paused schedule fire again.

    It goes on at its next time; what it missed while it was paused is not made up.
    """
    schedule = with_schedules(lambda schedules: schedules.resume(name))
    out = Out()
    if as_json:
        out.json(schedule_document(schedule))
    else:
        when = "never again" if schedule.next_at is None else stamp(schedule.next_at, datetime.now(UTC))
        out.line(f"Resumed {printable(name)}; its next run: {when}")
    out.flush()
