"""`treadle functions`: the functions that jobs call (L11, F1)."""

from __future__ import annotations

import click

from treadle.cli.lazy import LazyGroup
from treadle.cli.options import store_option

COMMANDS = {
    "list": ("treadle.cli.commands.functions.list", "List the functions, by name."),
    "add": ("treadle.cli.commands.functions.add", "Register a function by URL, or change it."),
    "remove": ("treadle.cli.commands.functions.remove", "Forget a function that was registered by URL."),
    "activate": ("treadle.cli.commands.functions.activate", "Let jobs call a function again."),
    "deactivate": ("treadle.cli.commands.functions.deactivate", "Stop jobs from calling a function."),
    "secret": ("treadle.cli.commands.functions.secret", "Print what a function's calls are signed with."),
}


@click.command("functions", cls=LazyGroup, listed=COMMANDS, invoke_without_command=True)
@store_option
@click.pass_context
def command(context: click.Context) -> None:
    """Look after the functions that jobs call.

    Running services notice within about a second what is changed here.
    """
    if context.invoked_subcommand is None:
        raise click.UsageError("Missing command.", context)
