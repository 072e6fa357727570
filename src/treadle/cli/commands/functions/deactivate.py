"""`treadle functions deactivate` (L11, F1)."""

from __future__ import annotations

from pathlib import Path

import click

from treadle.cli.functions import FUNCTION_NAME, folder_option, function_document, switch
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out


@click.command("deactivate")
@click.argument("name", type=FUNCTION_NAME)
@folder_option
@json_option
@store_option
def command(name: str, folder: Path, as_json: bool) -> None:
    """Stop jobs from calling a function.

    Its jobs fail, and are dead once their attempts are used up, until it is activated again.
    """
    function = switch(name, folder, active=False)
    out = Out()
    if as_json:
        out.json(function_document(function))
    else:
        out.line(f"Deactivated {name}")
    out.flush()
