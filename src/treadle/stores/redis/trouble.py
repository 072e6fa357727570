"""What a driver's errors mean to a caller: to be repeated, no room, or a wrong setting (S7)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions as driver

from treadle.core.errors import InvalidArgument, StoreError, StoreFull, StoreUnavailable

# The driver knows some errors by class and takes their code away; of others, and of those that older servers wrap in the
# error of a script, the code stands somewhere in the text.
_CODES: dict[type[Exception], str] = {
    driver.OutOfMemoryError: "OOM command not allowed",
    driver.ReadOnlyError: "READONLY",
    driver.BusyLoadingError: "LOADING",
    driver.MasterDownError: "MASTERDOWN",
    driver.ClusterDownError: "CLUSTERDOWN",
    driver.TryAgainError: "TRYAGAIN",
    driver.AuthenticationError: "NOAUTH",
    driver.AuthorizationError: "NOAUTH",
    driver.NoPermissionError: "NOPERM",
}
_FOR_A_WHILE = {
    "READONLY": "it is a replica at the moment (a failover?)",
    "previous master is now a slave": "it is a replica at the moment (a failover?)",
    "LOADING": "it is still loading its data",
    "MASTERDOWN": "its primary is down",
    "CLUSTERDOWN": "its cluster is down",
    "NOREPLICAS": "it has too few replicas to take writes",
    "BUSY Redis": "it is busy with another client's script",
    "BUSY Valkey": "it is busy with another client's script",
    "TRYAGAIN": "its cluster is moving slots",
    "max number of clients reached": "it has as many clients as it allows",
}
_REFUSALS = ("NOAUTH", "WRONGPASS", "NOPERM", "invalid username-password", "DB index is out of range")


@contextmanager
def translated(server: str) -> Iterator[None]:
    """Raise treadle's errors for the driver's; `server` is how messages call it."""
    try:
        yield
    except (driver.RedisError, OSError, TimeoutError) as error:
        raise _meaning(server, error) from None
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"text with an unpaired surrogate {error.object[error.start]!r} cannot be stored") from None


def _meaning(server: str, error: Exception) -> StoreError:
    text = str(error) or type(error).__name__
    told = f"{next((code for kind, code in _CODES.items() if isinstance(error, kind)), '')} {text}"
    if "OOM command not allowed" in told:
        return StoreFull(
            f"Redis at {server} is out of memory, nothing was stored: raise its maxmemory, or prune jobs, then repeat the call"
        )
    if "MISCONF" in told:
        return StoreFull(f"Redis at {server} cannot write to its disk, and takes no writes: {text}")
    if any(sign in told for sign in _REFUSALS):
        return StoreError(
            f"Redis at {server} refuses this client: {text}; check user, password, database and rights in the URL"
        )
    for sign, meaning in _FOR_A_WHILE.items():
        if sign in told:
            return StoreUnavailable(f"Redis at {server} takes no call: {meaning}")
    if "WRONGTYPE" in told:
        return StoreError(f"Redis at {server} holds other data under this store's prefix: choose another prefix ({text})")
    if isinstance(error, driver.ResponseError):
        return StoreError(f"Redis at {server} refused the call: {text}")
    return StoreUnavailable(f"Redis at {server} cannot be reached: {text}")
