"""Loading an application's `Tasks` from `module:attribute` (L7)."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

import click

from treadle.cli.parameters import ParamType
from treadle.core.errors import TreadleError
from treadle.tasks.app import Tasks


class CannotLoad(TreadleError):
    """The application is not there, or fails while it is imported."""

    code = "cannot_load"


class AppPath(ParamType):
    """`module:attribute`, split."""

    name = "app"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Module and attribute, or a usage error."""
        if isinstance(value, tuple):
            return value
        module, _, attribute = str(value).partition(":")
        if not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
            self.fail(f"{value!r} is not module:attribute, such as app:tasks or shop.jobs:tasks.", param, ctx)
        return module, attribute


def load(module: str, attribute: str) -> Tasks:
    """The `Tasks` of that name. Modules are also looked for in the current folder. Raises `CannotLoad`."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found: object = _imported(module)
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise CannotLoad(f"{module} has no attribute {attribute!r}") from None
    if not isinstance(found, Tasks):
        raise CannotLoad(f"{module}:{attribute} is {_kind(found)}, not a treadle.Tasks")
    return found


def _imported(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise CannotLoad(f"there is no module {error.name!r} here or on the Python path") from error
        raise CannotLoad(f"importing {module} failed: {_told(error)}") from error
    except (Exception, SystemExit) as error:
        raise CannotLoad(f"importing {module} failed: {_told(error)}") from error


def _told(error: BaseException) -> str:
    """What was raised, and in which line of the application."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if len(frames) > 1 else ""
    return f"{type(error).__name__}: {error}{place}"


def _kind(found: object) -> str:
    return f"the class {found.__name__}" if isinstance(found, type) else f"of type {type(found).__name__}"
