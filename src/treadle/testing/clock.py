"""A clock that stands still until a test moves it (S2)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import checked_moment, seconds

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """Tells `start` (2026-01-01T00:00Z if left out) until `advance` moves it; safe to use from any thread (S2).

    Raises `InvalidArgument` where `start` is no datetime or a naive one.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now = START if start is None else checked_moment(start, "the clock's start")
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], None]] = {}

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        with self._lock:
            return self._now

    def advance(self, by: float | timedelta) -> datetime:
        """Move on by that many seconds, or a timedelta, tell whoever subscribed, and answer the new moment.

        Raises `InvalidArgument` for a negative, NaN or infinite step, and one that leaves the year 9999.
        """
        step = seconds(by, "the step of the clock")
        if step < 0:
            raise InvalidArgument(f"the clock cannot go back: {by!r}; make a new ManualClock for an earlier moment")
        with self._lock:
            try:
                self._now += by if isinstance(by, timedelta) else timedelta(seconds=step)
            except OverflowError:
                raise InvalidArgument(f"the clock cannot go beyond the year 9999: {by!r} from {self._now}") from None
            now, callbacks = self._now, list(self._callbacks.values())
        for callback in callbacks:  # outside the lock, so that a callback may read the clock or unsubscribe
            callback()
        return now

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after each advance, in the thread that advances; answers what ends that, safe twice."""
        token = object()
        with self._lock:
            self._callbacks[token] = callback

        def unsubscribe() -> None:
            with self._lock:
                self._callbacks.pop(token, None)

        return unsubscribe

    def __repr__(self) -> str:
        return f"ManualClock({self.now().isoformat()})"
