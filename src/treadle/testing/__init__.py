"""The public testing kit: a clock to move by hand, the contract that every store passes, faults, and asserts for handlers.

Needs the extra `treadle[testing]` for the contracts; the clock, the faults and the factory need nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from treadle.core.errors import MissingExtra

if TYPE_CHECKING:
    from treadle.testing.asserts import assert_enqueued, refute_enqueued
    from treadle.testing.clock import ManualClock
    from treadle.testing.contract import store_contract
    from treadle.testing.factory import Held, JobFactory
    from treadle.testing.faults import FaultyStore
    from treadle.testing.handlers import run_handler
    from treadle.testing.library import tasks_contract

__all__ = [
    "FaultyStore",
    "Held",
    "JobFactory",
    "ManualClock",
    "assert_enqueued",
    "refute_enqueued",
    "run_handler",
    "store_contract",
    "tasks_contract",
]

_HOMES = {
    "FaultyStore": "faults",
    "Held": "factory",
    "JobFactory": "factory",
    "ManualClock": "clock",
    "assert_enqueued": "asserts",
    "refute_enqueued": "asserts",
    "run_handler": "handlers",
    "store_contract": "contract",
    "tasks_contract": "library",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'treadle.testing' has no attribute {name!r}")
    try:
        return getattr(import_module(f"treadle.testing.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name in {"pytest", "hypothesis"}:
            raise MissingExtra(f"{name} needs {error.name}: install treadle[testing]") from None
        raise
