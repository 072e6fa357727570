"""`treadle config get`: settings, and where they come from (L11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from treadle.cli.config import SETTING, setting_document, with_settings
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.table import Column, Table

if TYPE_CHECKING:
    from treadle.functions.stored_settings import Settings, SettingValue

COLUMNS = (Column("NAME"), Column("VALUE", right=True), Column("FROM"), Column("PROBLEM", least=16))


@click.command("get")
@click.argument("key", type=SETTING, required=False)
@json_option
@store_option
def command(key: str | None, as_json: bool) -> None:
    """Print settings, and where they come from.

    With a KEY its value alone. The environment, here that of this very command, holds over what is stored, and that over the
    default.
    """

    async def read(settings: Settings) -> Sequence[SettingValue]:
        return await settings.all() if key is None else [await settings.get(key)]

    found = with_settings(read, must_exist=True)
    out = Out()
    if as_json:
        documents = [setting_document(setting) for setting in found]
        out.json(documents if key is None else documents[0])
    elif key is None:
        Table(out, COLUMNS).rows([[one.name, str(one.value), one.source, one.problem or ""] for one in found])
    else:
        out.line(str(found[0].value))
    out.flush()
