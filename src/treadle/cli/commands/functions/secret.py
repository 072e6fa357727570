"""`treadle functions secret`: what a function's calls are signed with (F4)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from treadle.cli.functions import FUNCTION_NAME, folder_option, with_functions
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out

if TYPE_CHECKING:
    from treadle.functions.catalogue import Catalogue
    from treadle.functions.directory import Directory


@click.command("secret")
@click.argument("name", type=FUNCTION_NAME)
@click.option("--rotate", is_flag=True, help="Make a new one first; running services sign with it within about a second.")
@folder_option
@json_option
@store_option
def command(name: str, rotate: bool, folder: Path, as_json: bool) -> None:
    """Print what a function's calls are signed with.

    A function in the functions folder finds it in its environment, as TREADLE_FUNCTION_SECRET.
    """

    async def secret(directory: Directory, catalogue: Catalogue) -> str:
        await catalogue.find(name)
        function = await (directory.rotate_secret(name) if rotate else directory.get(name))
        return function.secret

    text = with_functions(folder, secret, must_exist=True)
    out = Out()
    if as_json:
        out.json({"name": name, "secret": text})
    else:
        out.line(text)
    out.flush()
