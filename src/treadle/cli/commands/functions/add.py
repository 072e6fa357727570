"""`treadle functions add`: register a function by URL (L11, F1)."""

from __future__ import annotations

import click

from treadle.cli.functions import FAIL_ON, FUNCTION_NAME, FUNCTION_URL, function_document, with_functions
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.parameters import PlainInteger
from treadle.functions.function import MAX_CONCURRENCY


@click.command("add")
@click.argument("name", type=FUNCTION_NAME)
@click.argument("url", type=FUNCTION_URL)
@click.option(
    "--method",
    type=click.Choice(["JOB", "POST"]),
    default="JOB",
    help="POST for servers that refuse unknown methods.  [default: JOB]",
)
@click.option("--fail-on", type=FAIL_ON, metavar="EXPR", help="Answers that count as failures, such as '>=500'.")
@click.option(
    "--concurrency", type=PlainInteger(1, MAX_CONCURRENCY), metavar="N", help="Jobs of it at once in one service process."
)
@json_option
@store_option
def command(name: str, url: str, method: str, fail_on: str | None, concurrency: int | None, as_json: bool) -> None:
    """Register a function by URL, or change it.

    A job is a request to URL/jobs/ID. The secret printed is what its calls are signed with; give it to the function. Changing
    a function keeps its secret, and whether it is active.
    """
    function = with_functions(None, lambda directory, catalogue: directory.add(name, url, method, fail_on, concurrency))
    out = Out()
    if as_json:
        out.json({**function_document(function), "secret": function.secret})
    else:
        out.line(f"{function.name} is at {function.url}{'' if function.active else ', and inactive'}")
        out.line(f"secret: {function.secret}")
    out.flush()
