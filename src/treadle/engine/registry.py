"""The registry: which names can be run here, and how (E11, E19)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treadle.core.payload import JSON
from treadle.core.policies.retry import RetryPolicy
from treadle.core.store import Demand


@dataclass(frozen=True, slots=True)
class Entry:
    """How jobs of one name are run. What is None is left to the profile of the worker.

    `takes_payload` False spares the decoding: the function gets the context alone, and with it the payload as it is stored.
    """

    name: str
    function: Callable[..., Any]
    is_async: bool
    takes_context: bool
    convert: Callable[[JSON], object] | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    retry: RetryPolicy | None = None
    queue: str | None = None
    takes_payload: bool = True


class Registry:
    """Entries by name; registering a name again replaces the old entry."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Register the entry."""
        self._entries[entry.name] = entry

    def get(self, name: str) -> Entry | None:
        """The entry of that name, if there is one."""
        return self._entries.get(name)

    @property
    def names(self) -> list[str]:
        """The registered names, in order."""
        return list(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    async def demands(
        self, free: int, queues: tuple[str, ...] | None, max_attempts: int, *, plain: bool = True
    ) -> tuple[list[Demand], bool]:
        """What a claim for `free` slots asks the store for, and whether that is all that could be run here.

        Each name goes with the attempts that a job gets where its enqueue said none (E4). `plain=False` leaves out handlers
        that need a thread.
        """
        entries = list(self._entries.values())  # another thread may register one meanwhile
        names = {entry.name: entry.max_attempts or max_attempts for entry in entries if plain or entry.is_async}
        return ([Demand(free, queues, names, max_attempts)] if names else []), True
