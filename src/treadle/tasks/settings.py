"""The settings of a `Tasks`, checked (E18, E29)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from os import PathLike, fspath

from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import checked_delay, checked_int, checked_queue
from treadle.core.policies.retention import Retention
from treadle.core.store import Store
from treadle.stores import open_store

Seconds = float | timedelta
_STORE = [name for name in dir(Store) if not name.startswith("_")]


def opened_store(store: object, *, migrate: bool) -> Store:
    """The store of a URL, or of the environment where that is None (S1); or the store itself."""
    return open_store(store, migrate=migrate) if store is None or isinstance(store, str) else checked_store(store)


def checked_store(store: object) -> Store:
    """The store, or `InvalidArgument` for what is none."""
    if isinstance(store, type):
        raise InvalidArgument(f"store must be a URL or a store object, not the class {store.__name__} itself")
    if isinstance(store, Store):
        return store
    kind = type(store).__name__
    if isinstance(store, PathLike):
        raise InvalidArgument(f"store must be a URL or a store object, not {kind}; for a file write 'sqlite:{fspath(store)}'")
    lacking = [name for name in _STORE if not hasattr(store, name)]
    some = f", which lacks {', '.join(lacking)}" if hasattr(store, "enqueue") else ""
    raise InvalidArgument(f"store must be a URL, such as 'sqlite:jobs.db', or a store object, not {kind}{some}")


def retention_of(retention: Seconds | None, key_retention: Seconds | None) -> Retention:
    """What the two settings mean together; the second is nothing without the first (E29)."""
    if retention is None:
        if key_retention is not None:
            raise InvalidArgument("key_retention needs retention: without it nothing is pruned at all")
        return Retention()
    keep = checked_delay(retention, "retention")
    return Retention(keep, keep, None if key_retention is None else checked_delay(key_retention, "key_retention"))


def checked_concurrency(concurrency: object) -> int:
    """A number of slots from 1 to 100,000."""
    return checked_int(concurrency, "concurrency", 1, 100_000)


def checked_queues(queues: Iterable[str]) -> tuple[str, ...]:
    """At least one name of a queue that the library may use."""
    if isinstance(queues, str):
        raise InvalidArgument(f"queues must be a list of names, not the text {queues!r}")
    names = tuple(checked_queue(queue) for queue in queues)
    if not names:
        raise InvalidArgument("queues is empty; name at least one, or leave it out for all")
    return names
