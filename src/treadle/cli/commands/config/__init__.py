"""`treadle config`: the settings and keys of the functions service (L11, F6, F8)."""

from __future__ import annotations

import click

from treadle.cli.lazy import LazyGroup
from treadle.cli.options import store_option

COMMANDS = {
    "get": ("treadle.cli.commands.config.get", "Print settings, and where they come from."),
    "set": ("treadle.cli.commands.config.set", "Store a setting."),
    "unset": ("treadle.cli.commands.config.unset", "Let a setting's default hold again."),
    "rotate-key": ("treadle.cli.commands.config.rotate_key", "Replace a key, and print the new one."),
    "user-token": ("treadle.cli.commands.config.user_token", "Print a token for a user."),
}


@click.command("config", cls=LazyGroup, listed=COMMANDS, invoke_without_command=True)
@store_option
@click.pass_context
def command(context: click.Context) -> None:
    """Look after the service's settings and keys.

    Running services go by what is changed here within about a second, unless their own environment sets it.
    """
    if context.invoked_subcommand is None:
        raise click.UsageError("Missing command.", context)
