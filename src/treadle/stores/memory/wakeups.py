"""Wake-ups inside the process: whoever listens is called when jobs may have become claimable (E26)."""

from __future__ import annotations

from collections.abc import Callable


class Wakers:
    """The listeners of a store."""

    def __init__(self) -> None:
        self._listening: tuple[_Listening, ...] = ()

    def listen(self, wake: Callable[[], None]) -> _Listening:
        """Call `wake` from now on."""
        listening = _Listening(self, wake)
        self._listening = (*self._listening, listening)
        return listening

    def wake(self) -> None:
        """Call them all; outside the store's lock, since a listener may call the store."""
        for listening in self._listening:
            try:
                listening.wake()
            except Exception:  # its event loop has ended, say: what it was told is a hint, and the job is stored
                self.forget(listening)

    def forget(self, listening: _Listening) -> None:
        """Call it no longer."""
        self._listening = tuple(one for one in self._listening if one is not listening)


class _Listening:
    """One subscription."""

    def __init__(self, wakers: Wakers, wake: Callable[[], None]) -> None:
        self._wakers = wakers
        self.wake = wake

    async def close(self) -> None:
        """End it."""
        self._wakers.forget(self)
