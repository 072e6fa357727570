"""`treadle cron next`: the coming times of an expression, in its zone and in UTC, with what clock changes do to them (L10)."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from treadle.cli.ages import iso
from treadle.cli.options import json_option
from treadle.cli.output import Out
from treadle.cli.parameters import PlainInteger
from treadle.cli.table import Column, Table
from treadle.cli.times import Moment, Zone
from treadle.core.cron import Cron, Occurrence
from treadle.core.cron.cron import MAX_COUNT
from treadle.core.errors import InvalidArgument

SIX = 6


@click.command("next")
@click.argument("expression", metavar="EXPR")
@click.option("--tz", type=Zone(), default="UTC", show_default=True, metavar="ZONE", help="The zone, such as Europe/Berlin.")
@click.option(
    "--after",
    type=Moment(),
    metavar="ISO",
    help="Times after this moment, in the zone if it names none.  [default: now]",
)
@click.option(
    "--count", type=PlainInteger(1, MAX_COUNT), default=5, show_default=True, metavar="N", help="How many times to print."
)
@click.option("--seconds", is_flag=True, help="The expression has six fields, the second first.")
@json_option
def command(expression: str, tz: str, after: datetime | None, count: int, seconds: bool, as_json: bool) -> None:
    """Print the coming times of a cron expression.

    EXPR is one argument in quotes, such as "30 2 * * MON-FRI". Each time is printed in the zone and in UTC, with a note
    where a clock change moves it, merges several into it, or repeats it.
    """
    cron = _cron(expression, tz, seconds)
    if after is None:
        after = datetime.now(UTC)
    elif after.tzinfo is None:
        after = after.replace(tzinfo=cron.zone)
    found = cron.occurrences(after, count)
    out = Out()
    if as_json:
        out.json({"expression": expression, "tz": tz, "next": [iso(one.at) for one in found]})
    else:
        out.line(out.styled(f"{cron.describe()} ({tz})", "bold"))
        _print(out, cron, found)
    out.flush()


def _cron(expression: str, tz: str, seconds: bool) -> Cron:
    try:
        return Cron(expression, tz, seconds)
    except InvalidArgument as error:
        hint = "; --seconds takes six" if not seconds and len(expression.split()) == SIX else ""
        raise InvalidArgument(f"{error}{hint}") from None


def _print(out: Out, cron: Cron, found: list[Occurrence]) -> None:
    rows = [[_local(one, cron), f"{_plain(one.at)}Z", note(one, cron)] for one in found]
    if not rows:
        out.line("No more: the calendar ends on 29 December 9999.")
    elif cron.tz == "UTC":
        Table(out, (Column("UTC", whole=True),)).rows([[utc] for _, utc, _ in rows])
    else:
        columns = (
            Column(cron.tz, whole=True),
            Column("UTC", whole=True),
            Column("CLOCK CHANGE", least=24, rank=0, below=True),
        )
        Table(out, columns).rows(rows)


def _local(one: Occurrence, cron: Cron) -> str:
    return f"{one.at.astimezone(cron.zone):%a} {one.at.astimezone(cron.zone).isoformat(' ')}"


def _plain(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(" ")


def note(one: Occurrence, cron: Cron) -> str:
    """What a clock change did to this run, in words; empty where it did nothing."""
    local = one.at.astimezone(cron.zone)
    shows = local.replace(tzinfo=None, fold=0)
    if not one.moved:
        comes_twice = local.replace(fold=1).utcoffset() != local.utcoffset()
        return (
            f"the clocks show {_clock(shows, shows)} twice; this is the first time, the second is no run" if comes_twice else ""
        )
    first = _clock(one.first, shows)
    if not one.merged:
        return f"moved: the clocks skip {first}"
    if one.last == shows:
        return f"merged: those from {first} on, which the clocks skip, are one with this run"
    return f"moved and merged: the clocks skip {first} to {_clock(one.last, one.first)}, which are one run"


def _clock(moment: datetime, beside: datetime) -> str:
    """The time of day, with the date where it is another, and the seconds where there are some."""
    time = f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
    return time if moment.date() == beside.date() else f"{moment.date().isoformat()} {time}"
