"""What a driver's errors mean to a caller: to be repeated, no room, or a wrong setting (S7)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions as driver

from treadle.core.errors import Conflict, InvalidArgument, StoreError, StoreFull, StoreUnavailable, TreadleError
from treadle.core.transfer import fenced

# The driver knows some errors by class and takes their code away; of others, and of those that older servers wrap in the
# error of a script, the code stands somewhere in the text.
_CODES: dict[type[Exception], str] = {
    driver.OutOfMemoryError: "OOM command not allowed",
    driver.ReadOnlyError: "READONLY",
    driver.BusyLoadingError: "LOADING",
    driver.MasterDownError: "MASTERDOWN",
    driver.ClusterDownError: "CLUSTERDOWN",
    driver.MovedError: "MOVED",
    driver.InvalidResponse: "Protocol error",
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
_MISTAKEN = {
    "MOVED": "it is a node of a cluster; add cluster=true to the URL",
    "Cluster mode is not enabled": "it is no cluster; leave cluster=true out of the URL",
    "Protocol error": "it does not answer as Redis does; check host and port in the URL",
    "EVALSHA": "it runs no scripts; name a sentinel by redis+sentinel://host:port/service",
    "SENTINEL": "it is no sentinel; name a server by redis://host:port",
}
_REFUSALS = ("NOAUTH", "WRONGPASS", "NOPERM", "ACL failure", "invalid username-password", "DB index is out of range")


@contextmanager
def translated(server: str) -> Iterator[None]:
    """Raise treadle's errors for the driver's; `server` is how messages call it."""
    try:
        yield
    except (driver.RedisError, driver.RedisClusterException, OSError, TimeoutError) as error:
        raise _meaning(server, error) from None
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"text with an unpaired surrogate {error.object[error.start]!r} cannot be stored") from None


def _meaning(server: str, error: Exception) -> TreadleError:
    # Behind " : <" a sentinel's error shows its whole client.
    text = (str(error) or type(error).__name__).partition(" : <")[0].rstrip(".")
    told = f"{next((code for kind, code in _CODES.items() if isinstance(error, kind)), '')} {text}"
    if (refused := fenced(text)) is not None:
        return refused
    if "TREADLEMARK" in text:
        return Conflict("the move has changed under way: is `treadle move` run twice?")
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
    for sign, meaning in _MISTAKEN.items():
        if sign in told:
            return StoreError(f"Redis at {server} is not what the URL takes it for: {meaning}")
    if "WRONGTYPE" in told:
        return StoreError(f"Redis at {server} holds other data under this store's prefix: choose another prefix ({text})")
    if isinstance(error, driver.ResponseError):
        return StoreError(f"Redis at {server} refused the call: {text}")
    return StoreUnavailable(f"Redis at {server} cannot be reached: {text}")
