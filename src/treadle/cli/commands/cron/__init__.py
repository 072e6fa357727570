"""`treadle cron`: look after the cron schedules of a store, and ask when an expression comes true (L10)."""

from __future__ import annotations

import click

from treadle.cli.lazy import LazyGroup
from treadle.cli.options import store_option

COMMANDS = {
    "list": ("treadle.cli.commands.cron.list", "List the schedules, by name."),
    "pause": ("treadle.cli.commands.cron.pause", "Stop a schedule from firing."),
    "resume": ("treadle.cli.commands.cron.resume", "Let a paused schedule fire again."),
    "run": ("treadle.cli.commands.cron.run", "Enqueue a schedule's job now."),
    "delete": ("treadle.cli.commands.cron.delete", "Delete a schedule."),
    "next": ("treadle.cli.commands.cron.next", "Print the coming times of a cron expression."),
}


@click.command("cron", cls=LazyGroup, listed=COMMANDS, invoke_without_command=True)
@store_option
@click.pass_context
def command(context: click.Context) -> None:
    """Look after cron schedules.

    Workers notice within their poll interval, a second unless it is set, what is changed here; what is paused or deleted
    fires no more at once.
    """
    if context.invoked_subcommand is None:
        raise click.UsageError("Missing command.", context)
