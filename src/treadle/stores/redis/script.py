"""Lua scripts: read from their files once, their includes put in, and known to the server by their digest."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from treadle.core.policies.limits import FUNCTIONS_QUEUE, PLUGIN_QUEUE_PREFIX

_FOLDER = Path(__file__).with_name("scripts")
_INCLUDE = re.compile(r"^--@include (\w+)\n", re.MULTILINE)
_CONSTANT = re.compile(r"^--@constant (\w+) (.*)\n", re.MULTILINE)
_USE = re.compile(r"\$([A-Z_]+)")
# What Lua has to know of the rules of core, put in here so that there is one place for it.
_OF_CORE = {"FUNCTIONS_QUEUE": FUNCTIONS_QUEUE, "PLUGIN_QUEUE_PREFIX": PLUGIN_QUEUE_PREFIX}


@dataclass(frozen=True, slots=True)
class Script:
    """A script as the server gets it. `digest` is what EVALSHA wants."""

    name: str
    source: str
    digest: str


@cache
def script(name: str) -> Script:
    """The script of `scripts/{name}.lua`, each include in it once, before its first user, and its constants put in.

    Constants are put in as text because a local that functions of the script use costs time at each call of the script,
    and the more the more of them there are.
    """
    source = _composed(_FOLDER / f"{name}.lua", set())
    constants = {**_OF_CORE, **dict(_CONSTANT.findall(source))}
    source = _CONSTANT.sub("", source)
    while _USE.search(source):  # a constant may be made of others
        source = _USE.sub(lambda use: constants[use[1]], source)
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


def names() -> list[str]:
    """The names of all scripts."""
    return sorted(path.stem for path in _FOLDER.glob("*.lua"))


def _composed(path: Path, included: set[str]) -> str:
    def include(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in included:
            return ""
        included.add(name)
        return _composed(_FOLDER / "include" / f"{name}.lua", included)

    return _INCLUDE.sub(include, path.read_text(encoding="utf-8"))
