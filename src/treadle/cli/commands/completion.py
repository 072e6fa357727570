"""`treadle completion`: the script that completes the command in a shell (L9)."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from treadle.cli.output import Out

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes treadle in a shell.

    Put `eval "$(treadle completion bash)"` into ~/.bashrc (zsh: ~/.zshrc), or save the fish script as
    ~/.config/fish/completions/treadle.fish.
    """
    made = get_completion_class(shell)
    assert made is not None
    out = Out()
    out.line(made(context.find_root().command, {}, "treadle", "_TREADLE_COMPLETE").source().strip())
    out.flush()
