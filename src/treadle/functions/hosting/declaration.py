"""What the folder of a function declares: `main.py`, or `function.toml` with a command (F1)."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from treadle.core.errors import InvalidArgument
from treadle.functions.fail_on import FailOn
from treadle.functions.function import Method
from treadle.functions.hosting.manifest import MANIFEST, Manifest
from treadle.functions.shortage import lacking

MAIN = "main.py"
RUNTIME = "treadle.functions.hosting.runtime"
Start = Literal["first-use", "service"]
Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class FolderFunction:
    """A function of the functions folder, as its files declare it.

    `broken` says in one line why it cannot run; its other fields are then the defaults. `stamp` changes with `function.toml`
    and `main.py`, `others` with what else it consists of: the `*.py` beside a `main.py`, the files that the command names.
    """

    name: str
    folder: Path
    command: tuple[str, ...] = ()
    method: Method = "JOB"
    fail_on: FailOn | None = None
    concurrency: int | None = None
    start: Start = "first-use"
    health: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    ready_within: float | None = None
    broken: str | None = None
    stamp: Stamp = ()
    others: Stamp = ()


def declared(name: str, folder: Path) -> FolderFunction | None:
    """The function of that folder, or None where it has neither `main.py` nor `function.toml`.

    Raises `OSError` where it cannot be said, since something is lacking here.
    """
    stamp = _stamp(folder, [MANIFEST, MAIN])  # before they are read: a change meanwhile is then noticed at the next look
    found = {file for file, *_ in stamp}
    if not found:
        return None
    try:
        manifest = Manifest.read(folder / MANIFEST) if MANIFEST in found else Manifest()
        if not manifest.command and MAIN not in found:
            raise InvalidArgument(f"{MANIFEST} has no command, and there is no {MAIN}")
    except InvalidArgument as error:
        return FolderFunction(name, folder, broken=str(error), stamp=stamp)
    except OSError as error:
        if lacking(error):
            raise
        # Without a stamp, so that every look reads it again: what mends it, a right to read, say, changes no file.
        return FolderFunction(name, folder, broken=f"{MANIFEST} cannot be read: {error.strerror}")
    function = FolderFunction(
        name,
        folder,
        command=manifest.command or (sys.executable, "-P", "-m", RUNTIME, str(folder), "$PORT"),
        method=manifest.method,
        fail_on=manifest.fail_on,
        concurrency=manifest.concurrency,
        start=manifest.start,
        health=manifest.health,
        env=manifest.env,
        ready_within=manifest.ready_within,
        stamp=stamp,
    )
    return replace(function, others=_others(function))


def unchanged(function: FolderFunction) -> bool:
    """Whether its `function.toml` and `main.py` are still those that were read; cheap enough for every call."""
    return function.stamp == _stamp(function.folder, [MANIFEST, MAIN])


def wholly_unchanged(function: FolderFunction) -> bool:
    """Whether all of its files are still the same. Raises as `declared` does."""
    return unchanged(function) and function.others == _others(function)


def _others(function: FolderFunction) -> Stamp:
    if RUNTIME not in function.command:
        return _stamp(function.folder, function.command)
    try:
        return _stamp(function.folder, sorted(path.name for path in function.folder.iterdir() if path.suffix == ".py"))
    except OSError as error:
        if lacking(error):
            raise
        return ()


def _stamp(folder: Path, names: Iterable[str]) -> Stamp:
    """Name, time, size and number of each of these that is a file."""
    found = []
    for name in names:
        try:
            state = (folder / name).stat()
        except (OSError, ValueError):
            continue  # it is not there, or is a word of the command that is no path
        if stat.S_ISREG(state.st_mode):
            found.append((name, state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(found)
