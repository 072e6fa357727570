"""Wake-ups inside the process: whoever listens is called when jobs may have become claimable (E26)."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Wakers:
    """The listeners of a store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listening: tuple[_Listening, ...] = ()
        self._arrivals = 0

    def listen(self, wake: Callable[[], None]) -> _Listening:
        """Call `wake` from now on."""
        listening = _Listening(self, wake)
        with self._lock:
            self._listening = (*self._listening, listening)
        return listening

    def wake(self, arrivals: int) -> None:
        """Call them all if the count of arrivals has changed; outside the store's lock, since they may call the store.

        Threads may come here in another order than their jobs did: one wake-up too many then, never one too few.
        """
        if arrivals == self._arrivals:
            return
        self._arrivals = arrivals
        for listening in self._listening:
            try:
                listening.wake()
            except Exception:  # its event loop has ended, say: a wake-up is a hint, and the job is stored
                self.forget(listening)

    def forget(self, listening: _Listening) -> None:
        """Call it no longer."""
        with self._lock:
            self._listening = tuple(one for one in self._listening if one is not listening)


class _Listening:
    """One subscription."""

    def __init__(self, wakers: Wakers, wake: Callable[[], None]) -> None:
        self._wakers = wakers
        self.wake = wake

    async def close(self) -> None:
        """End it."""
        self._wakers.forget(self)
