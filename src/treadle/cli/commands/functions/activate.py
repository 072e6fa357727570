"""`treadle functions activate` (L11, F1)."""

from __future__ import annotations

from pathlib import Path

import click

from treadle.cli.functions import FUNCTION_NAME, folder_option, function_document, switch
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out


@click.command("activate")
@click.argument("name", type=FUNCTION_NAME)
@folder_option
@json_option
@store_option
def command(name: str, folder: Path, as_json: bool) -> None:
    """Let jobs call a function again.

    Dead jobs stay dead until they are retried.
    """
    function = switch(name, folder, active=True)
    out = Out()
    if as_json:
        out.json(function_document(function))
    else:
        out.line(f"Activated {name}")
    out.flush()
