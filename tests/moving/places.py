"""Stores of each kind to move between, each by URL where it has one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from tests.servers import postgres, valkey

from treadle.core.transfer import Movable
from treadle.engine.clock import EngineClock
from treadle.engine.ids import new_id
from treadle.engine.move import End, Move

KINDS = ("sqlite", "postgres", "valkey")
PAIRS = list(itertools.product(KINDS, KINDS))
_numbers = itertools.count(1)


def places(folder: Path) -> dict[str, Callable[[], str]]:
    """What gives the URL of a new, empty place; a Postgres one has no tables yet."""
    return {
        "sqlite": lambda: f"sqlite:{folder}/store-{next(_numbers)}.db",
        "postgres": lambda: f"{postgres.shared_server().url}?schema=moving_{next(_numbers)}",
        "valkey": lambda: f"{valkey.shared().url}?prefix={valkey.shared().fresh_prefix()}",
    }


def move(source: Movable, target: Movable, **options: object) -> Move:
    """A move between two stores, called `source` and `target` unless they say otherwise."""
    names = options.pop("names", ("source", "target"))
    return Move(
        End(source, names[0]),
        End(target, names[1]),
        EngineClock(),
        lambda: new_id(time.time_ns() // 1_000_000),
        **options,  # type: ignore[arg-type]  # wait, force, progress
    )
