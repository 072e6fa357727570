"""`treadle functions remove`: forget a function (L11)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treadle.cli.functions import FUNCTION_NAME, folder_option, with_functions
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.core.errors import Conflict

if TYPE_CHECKING:
    from treadle.functions.catalogue import Catalogue
    from treadle.functions.directory import Directory


@click.command("remove")
@click.argument("name", type=FUNCTION_NAME)
@folder_option
@json_option
@store_option
def command(name: str, folder: Path, as_json: bool) -> None:
    """Forget a function that was registered by URL.

    Its jobs stay. Those that are tried fail, unless the functions folder has a function of that name.
    """
    from treadle.functions.directory import BadFunction

    async def removed(directory: Directory, catalogue: Catalogue) -> None:
        function = None
        with suppress(BadFunction):  # what the store has of it is bad, and its remedy is to remove it
            function = await catalogue.find(name)
        if function is not None and function.url is None:
            # What the store has of it is its secret and whether it is active: to forget that would activate it again.
            raise Conflict(f"{name} is in the functions folder: take {folder / name} away, or deactivate it")
        await directory.remove(name)

    with_functions(folder, removed, must_exist=True)
    out = Out()
    if as_json:
        out.json({"removed": name})
    else:
        out.line(f"Removed {name}")
    out.flush()
