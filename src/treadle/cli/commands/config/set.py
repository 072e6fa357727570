"""`treadle config set`: store a setting (L11)."""

from __future__ import annotations

import click

from treadle.cli.config import SETTING, print_setting, with_settings
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.core.errors import InvalidArgument


def _checked(context: click.Context, param: click.Parameter, value: str) -> str:
    """The value, or a usage error; whether it fits the other settings only the store can tell."""
    from treadle.functions.settings import named_setting

    key = context.params.get("key")
    if key is not None:
        try:
            named_setting(key).checked(value)
        except InvalidArgument as error:
            raise click.BadParameter(f"{error}.", context, param) from None
    return value


@click.command("set")
@click.argument("key", type=SETTING)
@click.argument("value", callback=_checked)
@json_option
@store_option
def command(key: str, value: str, as_json: bool) -> None:
    """Store a setting. Running services go by it within about a second."""
    print_setting(Out(), with_settings(lambda settings: settings.set(key, value)), as_json)
