"""`treadle functions remove`: forget a function (L11)."""

from __future__ import annotations

import click

from treadle.cli.functions import FUNCTION_NAME, with_functions
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out


@click.command("remove")
@click.argument("name", type=FUNCTION_NAME)
@json_option
@store_option
def command(name: str, as_json: bool) -> None:
    """Forget a function that was registered by URL.

    Its jobs stay. Those that are tried fail, unless the functions folder has a function of that name.
    """
    with_functions(None, lambda directory, catalogue: directory.remove(name))
    out = Out()
    if as_json:
        out.json({"removed": name})
    else:
        out.line(f"Removed {name}")
    out.flush()
