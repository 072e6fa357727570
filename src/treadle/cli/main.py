"""The entry point: the group of commands, and what each ending says to the shell (L1, L2)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from treadle import __version__
from treadle.cli.failures import tell_failure
from treadle.cli.lazy import LazyGroup
from treadle.cli.options import store_option
from treadle.cli.output import ReaderGone, drop_stdout

FAILED, USAGE, INTERRUPTED = 1, 2, 130

COMMANDS = {
    "migrate": ("treadle.cli.commands.migrate", "Bring the store's tables up to date."),
    "list": ("treadle.cli.commands.list", "List jobs, newest first."),
    "show": ("treadle.cli.commands.show", "Show one job with its attempts."),
    "retry": ("treadle.cli.commands.retry", "Send dead jobs round again."),
    "prune": ("treadle.cli.commands.prune", "Delete old jobs."),
    "stats": ("treadle.cli.commands.stats", "Count jobs by state."),
    "move": ("treadle.cli.commands.move", "Move everything into another store."),
    "cron": ("treadle.cli.commands.cron", "Look after cron schedules."),
    "work": ("treadle.cli.commands.work", "Run an application's jobs until told to stop."),
    "serve": ("treadle.cli.commands.serve", "Run the functions service until told to stop."),
    "functions": ("treadle.cli.commands.functions", "Look after the functions that jobs call."),
    "config": ("treadle.cli.commands.config", "Look after the service's settings and keys."),
    "completion": ("treadle.cli.commands.completion", "Print the script that completes treadle in a shell."),
}


@click.command(
    cls=LazyGroup,
    listed=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@store_option
@click.version_option(__version__, "-V", "--version", prog_name="treadle", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Look after the jobs of a store, and run them.

    Without --store, TREADLE_STORE says which store is meant, else sqlite:data/tasks.db.

    Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.
    """
    if context.invoked_subcommand is None:
        raise click.UsageError("Missing command.", context)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; answers the exit code."""
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character must not end the command
    try:
        status = cli.main(arguments, prog_name="treadle", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.UsageError as error:
        if error.ctx is None:  # click leaves it out for an option without its value
            error.ctx = click.Context(cli, info_name="treadle")
        error.show()
        return USAGE
    except (ReaderGone, BrokenPipeError):
        drop_stdout()
        return 0
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as error:
        tell_failure(error)
        return FAILED
    return status if isinstance(status, int) else 0


if __name__ == "__main__":
    sys.exit(main())
