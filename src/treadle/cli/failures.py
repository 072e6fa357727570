"""Why a command failed, in one line on standard error (L2)."""

from __future__ import annotations

import os
import traceback

import click

from treadle.cli.output import drop_stdout
from treadle.core.errors import TreadleError


def tell_failure(error: Exception) -> None:
    """Say why. The traceback is for those who ask for it with TREADLE_DEBUG=1."""
    if os.environ.get("TREADLE_DEBUG"):
        traceback.print_exception(error)
    else:
        tell(reason(error))


def reason(error: Exception) -> str:
    """What went wrong, in words."""
    match error:
        case click.ClickException():
            return error.format_message()
        case TreadleError():
            return str(error)
        case OSError() if error.strerror:
            return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        case _:
            return f"unexpected {type(error).__name__}: {error} (TREADLE_DEBUG=1 shows where)"


def tell(text: str) -> None:
    """One line on standard error, if anybody listens there."""
    try:
        click.echo(f"treadle: {' '.join(text.split())}", err=True)
    except OSError:
        drop_stdout()
