"""Which store a command works on, and opening it for as long as the command runs (S1, L1, L2)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from treadle.cli.failures import tell
from treadle.cli.options import STORE
from treadle.core.errors import InvalidArgument, NotFound
from treadle.core.store import Store
from treadle.engine.clock import EngineClock
from treadle.engine.operations import Operations
from treadle.stores import open_store, shown, store_url

T = TypeVar("T")


def given_url(context: click.Context | None = None) -> str | None:
    """The URL after `--store`, if there is one."""
    url: str | None = (context or click.get_current_context()).meta.get(STORE)
    return url


def chosen_url(context: click.Context | None = None) -> str:
    """The URL that holds. A usage error for one that no other process could share with this command."""
    context = context or click.get_current_context()
    given = given_url(context)
    url = store_url(given)
    if sqlite_path(url) == ":memory:" or url.lower().startswith("memory:"):
        raise bad_store(
            context,
            f"{url} lives and ends within one process, so there is nothing in it to see or to run; name a store on disk.",
        )
    return url


def bad_store(context: click.Context, message: str) -> click.BadParameter:
    """The usage error for a store URL, naming where the URL came from."""
    return click.BadParameter(message, context, param_hint="'--store'" if given_url(context) else "TREADLE_STORE")


def open_chosen(*, must_exist: bool, migrate: bool = False, secrets: bool = False) -> Store:
    """The chosen store. A SQLite file that must exist and does not is `NotFound`, and is not made (L2).

    One that is made for keeping `secrets` in it is its owner's alone, as keys are.
    """
    context = click.get_current_context()
    url = chosen_url(context)
    try:
        store = open_store(url, migrate=migrate)  # opens nothing yet
    except InvalidArgument as error:
        raise bad_store(context, f"{error}.") from None
    if (path := _missing_file(url)) is not None:
        if must_exist:
            raise NotFound(f"there is no store at {shown(url)}; `treadle migrate` or the first job makes it")
        if secrets:
            _make_private(path)
    return store


def _missing_file(url: str) -> Path | None:
    """The file of a SQLite store, if it is not there."""
    path = sqlite_path(url)
    return None if path is None or Path(path).exists() else Path(path)


def _make_private(path: Path) -> None:
    """Make an empty file, which SQLite takes for a new database; its other files get the mode of this one.

    Where that fails, the store fails at the same, and says why.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def sqlite_path(url: str) -> str | None:
    """The path in a SQLite URL, None for other stores."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() != "sqlite":
        return None
    path = rest.partition("?")[0]
    return path.removeprefix("///")


def with_store(work: Callable[[Store], Awaitable[T]], *, must_exist: bool = True, secrets: bool = False) -> T:
    """Do the work on the chosen store and close it, whatever happens.

    A SQLite file that is made for `secrets` is told of: in the wrong folder, say, nobody would notice otherwise.
    """
    made = secrets and _missing_file(chosen_url()) is not None
    store = open_chosen(must_exist=must_exist, secrets=secrets)

    async def session() -> T:
        try:
            return await work(store)
        finally:
            await store.close()

    result = asyncio.run(session())
    if made:
        tell(f"there was no store at {shown(chosen_url())}, so that it was made just now")
    return result


def with_operations(work: Callable[[Operations], Awaitable[T]]) -> T:
    """Do the work on the jobs of the chosen store, which must exist."""
    return with_store(lambda store: work(Operations(store, EngineClock())))
