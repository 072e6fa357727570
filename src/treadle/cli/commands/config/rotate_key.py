"""`treadle config rotate-key`: replace a key (L11, F8)."""

from __future__ import annotations

import click

from treadle.cli.config import with_keys
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.functions.keys import NAMES


@click.command("rotate-key")
@click.argument("name", type=click.Choice(NAMES))
@json_option
@store_option
def command(name: str, as_json: bool) -> None:
    """Replace a key, and print the new one.

    It is shown this once. The old one is refused by all services on the store within about a second. Rotating `signing`, the
    secret of users' tokens, ends all of them.
    """
    key = with_keys(lambda keys: keys.rotate(name))
    out = Out()
    if as_json:
        out.json({"name": name, "key": key})
    else:
        out.line(key)
    out.flush()
