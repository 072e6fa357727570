"""The engine's clock: the machine's own unless one is injected, which then rules the store too (S2, S9)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from treadle.core.clock import Clock
from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import checked_moment


class EngineClock:
    """Tells the time, says what to hand to the store, and wakes sleepers when an injected clock is moved."""

    def __init__(self, injected: Clock | None = None) -> None:
        if injected is not None and not isinstance(injected, Clock):
            raise InvalidArgument(f"the clock must have a method now(), not {type(injected).__name__}")
        if injected is not None:
            checked_moment(injected.now(), "what the clock's now() answers")
        self._injected = injected

    @property
    def injected(self) -> bool:
        """Whether this is not the machine's clock."""
        return self._injected is not None

    def now(self) -> datetime:
        """The present moment, in UTC."""
        return datetime.now(UTC) if self._injected is None else _utc(self._injected)

    def for_store(self) -> datetime | None:
        """What a store operation gets as `now`: None, so that the store's own clock decides, unless one is injected."""
        return None if self._injected is None else _utc(self._injected)

    def seconds(self) -> float:
        """A count of seconds for measuring spans, not moments: monotonic, or the injected clock's."""
        return time.monotonic() if self._injected is None else self._injected.now().timestamp()

    def unix_ms(self) -> int:
        """Milliseconds since 1970, for ids."""
        return time.time_ns() // 1_000_000 if self._injected is None else int(self._injected.now().timestamp() * 1000)

    def on_move(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` whenever an injected clock is moved by hand; answers how to end that."""
        subscribe: Callable[[Callable[[], None]], Callable[[], None]] | None = getattr(self._injected, "subscribe", None)
        return (lambda: None) if subscribe is None else subscribe(callback)


def _utc(clock: Clock) -> datetime:
    """What it says, in UTC: a store may keep a moment as it gets it, and reckoning in a zone goes wrong at its changes."""
    moment = clock.now()
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
