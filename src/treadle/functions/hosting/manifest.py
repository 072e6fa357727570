"""`function.toml`: how a function is started, called and looked at."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import checked_duration
from treadle.functions.fail_on import FailOn
from treadle.functions.function import Method, checked_concurrency, checked_method

MANIFEST = "function.toml"
LONGEST_START = 3600.0
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_PATH = re.compile(r"/[!-~]*\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The keys of a `function.toml`, checked; what it leaves out has the default."""

    command: tuple[str, ...] = ()
    method: Method = "JOB"
    fail_on: FailOn | None = None
    concurrency: int | None = None
    start: Literal["first-use", "service"] = "first-use"
    health: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    ready_within: float | None = None

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """The manifest in that file. Raises `InvalidArgument`, in one line that begins with the file's name, and `OSError`."""
        try:
            values = tomllib.loads(path.read_bytes().decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidArgument(f"{MANIFEST} is no TOML: {error}") from None
        unknown = sorted(set(values) - set(_CHECKS))
        if unknown:
            raise InvalidArgument(f"{MANIFEST} has the unknown key {unknown[0]!r}; it takes {', '.join(sorted(_CHECKS))}")
        try:
            return cls(**{key: _CHECKS[key](value) for key, value in values.items()})
        except InvalidArgument as error:
            raise InvalidArgument(f"{MANIFEST}: {error}") from None


def _command(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as error:
            raise InvalidArgument(f"command cannot be split into words: {error}") from None
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and "\0" not in word for word in value):
        raise InvalidArgument('command must be text or a list of texts, such as ["node", "main.mjs"]')
    if not value[0]:
        raise InvalidArgument("command must begin with the name of a program")
    return tuple(value)


def _fail_on(value: Any) -> FailOn:
    if not isinstance(value, str):
        raise InvalidArgument(f"fail_on must be text, such as '>=500', not {value!r:.40}")
    return FailOn(value)


def _start(value: Any) -> str:
    if value not in ("first-use", "service"):
        raise InvalidArgument(f"start must be 'first-use', or 'service' to be started with the service; not {value!r:.40}")
    return str(value)


def _health(value: Any) -> str:
    if not isinstance(value, str) or not _PATH.match(value):
        raise InvalidArgument(f"health must be a path that answers 2xx, such as '/health'; not {value!r:.40}")
    return value


def _env(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidArgument("env must be a table of names and texts")
    for name, text in value.items():
        if not _VARIABLE.match(name):
            raise InvalidArgument(f"env has {name[:40]!r}, which is no name of a variable")
        if name == "PORT" or name.startswith("TREADLE_"):
            raise InvalidArgument(f"env must not set {name[:40]}: PORT and TREADLE_... are set by the service")
        if not isinstance(text, str) or "\0" in text:
            raise InvalidArgument(f"env.{name[:40]} must be text, in quotes; not {text!r:.40}")
    return value


def _ready_within(value: Any) -> float:
    seconds = checked_duration(value, "ready_within")
    if seconds > LONGEST_START:
        raise InvalidArgument(f"ready_within must be at most {LONGEST_START:g} seconds, not {seconds:g}")
    return seconds


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "command": _command,
    "method": checked_method,
    "fail_on": _fail_on,
    "concurrency": checked_concurrency,
    "start": _start,
    "health": _health,
    "env": _env,
    "ready_within": _ready_within,
}
