"""`treadle cron list`: the schedules by name, with what they mean and when they run (L10, T14)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import click

from treadle.cli.ages import relative
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.progress import Progress
from treadle.cli.schedules import schedule_document, sentence, with_schedules
from treadle.cli.streaming import print_json, print_table
from treadle.cli.table import Column
from treadle.core.schedule import Schedule
from treadle.engine.schedules import Schedules

PAUSED, OVERDUE = "paused", "due "


def _colour(next_run: str) -> str | None:
    return "yellow" if next_run == PAUSED else "red" if next_run.startswith(OVERDUE) else None


COLUMNS = (
    Column("NAME", least=16, room=8),
    Column("EXPRESSION", rank=3),
    Column("ZONE", least=8, rank=2),
    Column("LAST", room=9, rank=1),
    Column("NEXT", room=9, style=_colour),
    Column("MEANING", least=24, rank=0, below=True),
)


@click.command("list")
@json_option
@store_option
def command(as_json: bool) -> None:
    """List the schedules, by name.

    LAST is when a schedule last fired or was run by hand, NEXT when it fires next. One that is due, and stays so, has no
    worker to fire it.
    """
    out = Out()

    async def printed(schedules: Schedules) -> None:
        async with Progress("Listing", "schedules", wanted=not out.terminal):
            if as_json:
                await print_json(out, schedules.iterate(), schedule_document)
            else:
                await print_table(out, COLUMNS, schedules.iterate(), partial(_row, now=datetime.now(UTC)), "No schedules.")

    with_schedules(printed)
    out.flush()


def _row(schedule: Schedule, now: datetime) -> list[str]:
    last = "never" if schedule.last_at is None else relative(schedule.last_at, now)
    meaning = sentence(schedule) or "cannot be read on this machine"
    return [schedule.name, schedule.expression, schedule.tz, last, _next(schedule, now), meaning]


def _next(schedule: Schedule, now: datetime) -> str:
    if schedule.paused:
        return PAUSED
    if schedule.next_at is None:
        return "never"
    return relative(schedule.next_at, now) if schedule.next_at > now else f"{OVERDUE}{relative(schedule.next_at, now)}"
