"""Options that several commands share (L1, L3, L8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from treadle.cli.parameters import JobName
from treadle.core.job import State

F = TypeVar("F", bound=Callable[..., Any])
STORE = "treadle.store"


def _remember_store(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        if not value.strip():
            raise click.BadParameter("the URL is empty.", ctx, param)
        ctx.meta[STORE] = value


def store_option(command: F) -> F:
    """`--store URL`, before the command's name or after it; the later one holds."""
    return click.option(
        "--store",
        metavar="URL",
        expose_value=False,
        callback=_remember_store,
        help="The store: sqlite:PATH, postgres://... or redis://...  [default: TREADLE_STORE, else sqlite:data/tasks.db]",
    )(command)


def json_option(command: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document, and nothing else.")(command)


def name_option(help: str) -> Callable[[F], F]:
    """`--name N`, which may be given several times."""
    return click.option("--name", "names", type=JobName(), multiple=True, metavar="NAME", help=help)


def status_option(help: str) -> Callable[[F], F]:
    """`--status S`, which may be given several times."""
    choice = click.Choice([state.value for state in State])
    return click.option("--status", "states", type=choice, multiple=True, metavar="STATE", help=help)
