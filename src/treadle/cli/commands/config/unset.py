"""`treadle config unset`: let a setting's default hold again (L11)."""

from __future__ import annotations

import click

from treadle.cli.config import SETTING, print_setting, with_settings
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out


@click.command("unset")
@click.argument("key", type=SETTING)
@json_option
@store_option
def command(key: str, as_json: bool) -> None:
    """Forget the stored value of a setting, so that its default holds again."""
    print_setting(Out(), with_settings(lambda settings: settings.unset(key)), as_json)
