"""Wake-ups: whoever listens is told soon after jobs may have become claimable (E26)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable


class Listeners:
    """The wake functions of one store, from any thread."""

    def __init__(self) -> None:
        self._wakes: dict[object, Callable[[], None]] = {}

    def __bool__(self) -> bool:
        return bool(self._wakes)

    def add(self, token: object, wake: Callable[[], None]) -> None:
        """From now on call `wake`."""
        self._wakes[token] = wake

    def remove(self, token: object) -> None:
        """No longer; safe twice."""
        self._wakes.pop(token, None)

    def clear(self) -> None:
        """Forget them all, as in the child of a fork: it is the parent's loops that they would wake."""
        self._wakes.clear()

    def tell(self) -> None:
        """Call them all. A wake-up is a hint, so one that fails (its loop was closed, say) must not harm a write."""
        for wake in list(self._wakes.values()):
            with contextlib.suppress(Exception):
                wake()


class Subscription:
    """What `listen` answers."""

    def __init__(self, listeners: Listeners, wake: Callable[[], None]) -> None:
        self._listeners = listeners
        listeners.add(self, wake)

    async def close(self) -> None:
        """End the subscription; safe twice."""
        self._listeners.remove(self)
