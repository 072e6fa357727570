"""The Python client of the functions service, blocking and async (F16): `pip install "treadle[client]"`.

Everything public is named here, and imported when it is first used: the service itself reads `treadle.client.wire` where
httpx2 is not installed, and a function written in Python needs no more than `verify_signature`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.client.asynchronous import (
        AsyncClient as AsyncClient,
        AsyncFunctions as AsyncFunctions,
        create_async_client as create_async_client,
    )
    from treadle.client.blocking import Client as Client, Functions as Functions, create_client as create_client
    from treadle.client.errors import (
        ApiError as ApiError,
        ClientError as ClientError,
        TimedOut as TimedOut,
        UnexpectedAnswer as UnexpectedAnswer,
        Unreachable as Unreachable,
    )
    from treadle.client.signature import verify_signature as verify_signature
    from treadle.client.wire import CronJob as CronJob, Job as Job, Requeued as Requeued, Status as Status

_HOMES = {
    "treadle.client.asynchronous": ("AsyncClient", "AsyncFunctions", "create_async_client"),
    "treadle.client.blocking": ("Client", "Functions", "create_client"),
    "treadle.client.errors": ("ApiError", "ClientError", "TimedOut", "UnexpectedAnswer", "Unreachable"),
    "treadle.client.signature": ("verify_signature",),
    "treadle.client.wire": ("CronJob", "Job", "Requeued", "Status"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__: list[str] = []
__all__ += list(_HOME_OF)


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'treadle.client' has no attribute {name!r}")
    try:
        value: object = getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        if error.name not in ("httpx2", "httpcore2"):
            raise
        raise ImportError(
            "the client needs httpx2, which is not installed; run: pip install 'treadle[client]'", name=error.name
        ) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
