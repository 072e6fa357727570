"""The functions of the chosen store and of a functions folder, as commands see them (L11)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from treadle.cli.failures import tell
from treadle.cli.opening import with_store
from treadle.cli.parameters import ParamType
from treadle.core.errors import InvalidArgument, MissingExtra
from treadle.core.store import Store
from treadle.engine.clock import EngineClock
from treadle.functions.fail_on import FailOn
from treadle.functions.function import checked_function_name, checked_url

if TYPE_CHECKING:
    from treadle.functions.catalogue import Catalogue
    from treadle.functions.directory import Directory
    from treadle.functions.function import Function

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Checked(ParamType):
    """Text that a check accepts; what it refuses is a usage error (L2)."""

    def __init__(self, name: str, check: Callable[[str], object]) -> None:
        self.name = name
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, or a usage error."""
        try:
            self._check(value)
        except InvalidArgument as error:
            self.fail(f"{error}.", param, ctx)
        return str(value)


FUNCTION_NAME = Checked("name", checked_function_name)
FUNCTION_URL = Checked("url", checked_url)
FAIL_ON = Checked("expr", FailOn)


def folder_option(command: F) -> F:
    """`--functions DIR`."""
    return click.option(
        "--functions",
        "folder",
        type=click.Path(path_type=Path),
        default=Path("functions"),
        metavar="DIR",
        help="The folder of functions that the service runs itself.  [default: functions/]",
    )(command)


def with_functions(
    folder: Path | None,
    work: Callable[[Directory, Catalogue], Awaitable[T]],
    *,
    must_exist: bool = False,
    aloud: bool = False,
) -> T:
    """Do the work on the functions registered in the chosen store, and on those in the folder.

    A SQLite file is made if there is none, since functions may be registered before the first job, unless it `must_exist` (L2).
    `aloud`: what is wrong with the folder is told on standard error, line by line.
    """
    try:
        from treadle.functions.catalogue import Catalogue
        from treadle.functions.directory import Directory
        from treadle.functions.hosting import Hosts
    except ModuleNotFoundError as error:
        raise missing_service(error) from None

    async def opened(store: Store) -> T:
        logger = logging.getLogger("treadle.cli.functions")  # of its own, since a command that fails says one line (L2)
        logger.propagate = False
        logger.handlers[:] = [_Aloud() if aloud else logging.NullHandler()]
        directory, hosts = Directory(store, logger=logger), Hosts(folder, dict, logger)
        return await work(directory, Catalogue(directory, hosts, EngineClock()))

    return with_store(opened, must_exist=must_exist, secrets=True)


def switch(name: str, folder: Path, *, active: bool) -> Function:
    """Let jobs call a function, or stop them from it."""

    async def switched(directory: Directory, catalogue: Catalogue) -> Function:
        await catalogue.find(name)  # so that one in the functions folder has a document that can say so
        return await (directory.activate(name) if active else directory.deactivate(name))

    return with_functions(folder, switched)


class _Aloud(logging.Handler):
    """Tells what is logged as commands tell things."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line on standard error."""
        tell(record.getMessage())


def missing_service(error: ModuleNotFoundError) -> Exception:
    """The error for a module of the service's own dependencies that is not installed; another goes on as it is."""
    if error.name is None or error.name.startswith("treadle"):
        return error
    return MissingExtra(f"the functions service needs {error.name}: install treadle[service]")


def function_document(function: Function) -> dict[str, Any]:
    """A function as JSON, without its secret (L8)."""
    return {
        "name": function.name,
        "url": function.url,
        "active": function.active,
        "method": function.method,
        "fail_on": None if function.fail_on is None else function.fail_on.text,
        "concurrency": function.concurrency,
    }
