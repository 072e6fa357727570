"""Background jobs that start on a file and grow to a cluster by changing one URL.

Everything public is named here, and imported when it is first used: `import treadle` loads no driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.core.cron import Cron as Cron
    from treadle.core.errors import (
        Conflict as Conflict,
        InvalidArgument as InvalidArgument,
        InvalidPayload as InvalidPayload,
        MissingExtra as MissingExtra,
        NotFound as NotFound,
        SchemaMissing as SchemaMissing,
        SchemaTooNew as SchemaTooNew,
        StoreError as StoreError,
        StoreFull as StoreFull,
        StoreMoved as StoreMoved,
        StoreUnavailable as StoreUnavailable,
        TreadleError as TreadleError,
        WrongDatabase as WrongDatabase,
    )
    from treadle.core.job import Enqueued as Enqueued, Failure as Failure, Job as Job, State as State
    from treadle.core.policies.retry import Exponential as Exponential, Fixed as Fixed
    from treadle.core.schedule import Schedule as Schedule
    from treadle.core.signals import GiveUp as GiveUp, Retry as Retry, Snooze as Snooze
    from treadle.core.store import Redriven as Redriven, Stats as Stats
    from treadle.engine.execution import Context as Context
    from treadle.engine.operations import Pruned as Pruned
    from treadle.stores import open_store as open_store
    from treadle.tasks.app import Tasks as Tasks
    from treadle.tasks.handler import Handler as Handler
    from treadle.tasks.options import NewJob as NewJob

__version__ = "0.1.0"

_HOMES = {
    "treadle.core.cron": ("Cron",),
    "treadle.core.errors": (
        "Conflict",
        "InvalidArgument",
        "InvalidPayload",
        "MissingExtra",
        "NotFound",
        "SchemaMissing",
        "SchemaTooNew",
        "StoreError",
        "StoreFull",
        "StoreMoved",
        "StoreUnavailable",
        "TreadleError",
        "WrongDatabase",
    ),
    "treadle.core.job": ("Enqueued", "Failure", "Job", "State"),
    "treadle.core.policies.retry": ("Exponential", "Fixed"),
    "treadle.core.schedule": ("Schedule",),
    "treadle.core.signals": ("GiveUp", "Retry", "Snooze"),
    "treadle.core.store": ("Redriven", "Stats"),
    "treadle.engine.execution": ("Context",),
    "treadle.engine.operations": ("Pruned",),
    "treadle.stores": ("open_store",),
    "treadle.tasks.app": ("Tasks",),
    "treadle.tasks.handler": ("Handler",),
    "treadle.tasks.options": ("NewJob",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__"]
__all__ += list(_HOME_OF)


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'treadle' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
