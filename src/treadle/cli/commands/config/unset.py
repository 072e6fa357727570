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
    """Let a setting's default hold again.

    What is stored is forgotten.
    """
    print_setting(Out(), with_settings(lambda settings: settings.unset(key), must_exist=True), as_json)
