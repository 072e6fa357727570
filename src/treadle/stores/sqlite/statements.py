"""The SQL files of this folder, read once each; a line `-- include FILE | {hole} = text` puts another file in its place."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r"^[ \t]*-- include (.+)$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")


@cache
def statement(name: str, source: str = "") -> str:
    """The SQL of `queries/NAME.sql`, without comments; `source` is the file that its line `-- include {source}` means."""
    return _COMMENT.sub("", _assembled(name, {"{source}": source})).strip()


@cache
def migrations() -> tuple[str, ...]:
    """The migrations in order; the first one makes schema version 1."""
    found = sorted(file.name for file in files(__package__).joinpath("migrations").iterdir() if file.name.endswith(".sql"))
    return tuple(files(__package__).joinpath("migrations", name).read_text("utf-8") for name in found)


@cache
def fence(name: str) -> str:
    """The triggers of `fences/NAME.sql`, without comments."""
    return _COMMENT.sub("", files(__package__).joinpath("fences", f"{name}.sql").read_text("utf-8"))


def schema() -> str:
    """All tables as the newest version has them, for people to read."""
    return files(__package__).joinpath("schema.sql").read_text("utf-8")


def _assembled(name: str, holes: dict[str, str]) -> str:
    text = files(__package__).joinpath("queries", f"{name}.sql").read_text("utf-8")
    for hole, filling in holes.items():
        text = text.replace(hole, filling)
    return _INCLUDE.sub(lambda found: _included(found.group(1)), text)


def _included(line: str) -> str:
    name, *fillings = (part.strip() for part in line.split("|"))
    holes = {}
    for filling in fillings:
        hole, _, text = filling.partition("=")
        holes[hole.strip()] = text.strip()
    return _assembled(name, holes)
