"""A click group whose commands are imported when they are used, so that `treadle --help` is quick."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """Knows the name, the module and the one-line summary of each command; the module's `command` is the rest."""

    def __init__(self, *args: Any, listed: dict[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.listed = listed

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they are listed."""
        return [*self.listed, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in self.listed:
            return super().get_command(ctx, cmd_name)
        command = import_module(self.listed[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.listed.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, without importing any."""
        commands = [
            CompletionItem(name, help=summary) for name, (_, summary) in self.listed.items() if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]
