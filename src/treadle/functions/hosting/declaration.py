"""What the folder of a function declares: `main.py`, or `function.toml` with a command (F1)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from treadle.core.errors import InvalidArgument
from treadle.functions.fail_on import FailOn
from treadle.functions.function import Method
from treadle.functions.hosting.manifest import MANIFEST, Manifest

MAIN = "main.py"
RUNTIME = "treadle.functions.hosting.runtime"
Start = Literal["first-use", "service"]
Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class FolderFunction:
    """A function of the functions folder, as its files declare it.

    `broken` says in one line why it cannot run; its other fields are then the defaults. `stamp` changes whenever one of
    its files does: `function.toml`, the `*.py` beside a `main.py`, and the files that the command names.
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


def declared(name: str, folder: Path) -> FolderFunction | None:
    """The function of that folder, or None where it has neither `main.py` nor `function.toml`. Raises nothing."""
    before = _stamp(folder, [MANIFEST])  # before it is read: a change meanwhile is then noticed at the next look
    has_main = (folder / MAIN).is_file()
    if not before and not has_main:
        return None
    try:
        manifest = Manifest.read(folder / MANIFEST) if before else Manifest()
        if not manifest.command and not has_main:
            raise InvalidArgument(f"{MANIFEST} has no command, and there is no {MAIN}")
    except (InvalidArgument, OSError) as error:
        reason = str(error) if isinstance(error, InvalidArgument) else f"{MANIFEST} cannot be read: {error.strerror}"
        return FolderFunction(name, folder, broken=reason, stamp=before + _stamp(folder, [MAIN]))
    watched = [word for word in manifest.command if word != MANIFEST] or _sources(folder)
    return FolderFunction(
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
        stamp=before + _stamp(folder, watched),
    )


def unchanged(function: FolderFunction) -> bool:
    """Whether its files are still those that were read."""
    folder = function.folder
    before = _stamp(folder, [MANIFEST])
    if function.broken is not None:
        return function.stamp == before + _stamp(folder, [MAIN])
    by_runtime = RUNTIME in function.command
    watched = _sources(folder) if by_runtime else [word for word in function.command if word != MANIFEST]
    return function.stamp == before + _stamp(folder, watched)


def _sources(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if path.suffix == ".py")
    except OSError:
        return []


def _stamp(folder: Path, names: list[str]) -> Stamp:
    """Name, time, size and number of each of these that is a file."""
    found = []
    for name in names:
        try:
            path = folder / name
            if path.is_file():
                stat = path.stat()
                found.append((name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except (OSError, ValueError):
            continue  # a word of a command that is no path, or a file that has just gone
    return tuple(found)
