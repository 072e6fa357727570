"""`treadle functions list`: what can be called, by name (L11)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from treadle.cli.functions import folder_option, function_document, with_functions
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.table import Column, Table

if TYPE_CHECKING:
    from treadle.functions.function import Function

COLUMNS = (
    Column("NAME", least=16),
    Column("STATE", style=lambda state: "yellow" if state == "inactive" else None),
    Column("PLACE", least=20),
    Column("METHOD", rank=2),
    Column("FAILS ON", rank=1),
    Column("AT ONCE", right=True, rank=0),
)


@click.command("list")
@folder_option
@json_option
@store_option
def command(folder: Path, as_json: bool) -> None:
    """List the functions, by name.

    Those registered by URL, and those in the functions folder. AT ONCE is how many jobs of a function one service process runs
    at the same time.
    """
    functions = with_functions(folder, lambda directory, catalogue: catalogue.list(), must_exist=True, aloud=True)
    out = Out()
    if as_json:
        out.json([function_document(function) for function in functions])
    elif functions:
        Table(out, COLUMNS).rows([_row(function, folder) for function in functions])
    else:
        out.line("No functions.")
    out.flush()


def _row(function: Function, folder: Path) -> list[str]:
    return [
        function.name,
        "active" if function.active else "inactive",
        function.url or str(folder / function.name),
        function.method,
        "" if function.fail_on is None else function.fail_on.text,
        "" if function.concurrency is None else str(function.concurrency),
    ]
