"""`treadle migrate`: bring the store's tables up to date (S4)."""

from __future__ import annotations

import click

from treadle.cli.opening import with_store
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.progress import Progress
from treadle.core.store import Store


@click.command("migrate")
@json_option
@store_option
def command(as_json: bool) -> None:
    """Bring the store's tables up to date.

    Safe to repeat, and from many processes at once. Says what was done.
    """
    out = Out()
    done = with_store(_migrate, must_exist=False)
    if as_json:
        out.json({"result": done})
    else:
        out.line(done)
    out.flush()


async def _migrate(store: Store) -> str:
    async with Progress("Migrating"):
        return await store.migrate()
