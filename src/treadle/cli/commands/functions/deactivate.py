"""`treadle functions deactivate` (L11, F1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from treadle.cli.functions import FUNCTION_NAME, folder_option, function_document, with_functions
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out

if TYPE_CHECKING:
    from treadle.functions.catalogue import Catalogue
    from treadle.functions.directory import Directory
    from treadle.functions.function import Function


@click.command("deactivate")
@click.argument("name", type=FUNCTION_NAME)
@folder_option
@json_option
@store_option
def command(name: str, folder: Path, as_json: bool) -> None:
    """Stop jobs from calling a function.

    Its jobs fail, and are dead once their attempts are used up, until it is activated again.
    """

    async def changed(directory: Directory, catalogue: Catalogue) -> Function:
        await catalogue.find(name)  # so that one in the functions folder has a document that can say so
        return await directory.deactivate(name)

    function = with_functions(folder, changed)
    out = Out()
    if as_json:
        out.json(function_document(function))
    else:
        out.line(f"Deactivated {name}")
    out.flush()
