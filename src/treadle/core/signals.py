"""What a handler raises to end its attempt on purpose (E14)."""

from __future__ import annotations

from datetime import timedelta

from treadle.core.policies.limits import checked_delay


class Signal(Exception):
    """The base of the three; catch it to let a handler's own signals through a broad `except`."""


class Retry(Signal):
    """Try again after `delay` (seconds or timedelta; None: the retry policy decides). The attempt is spent."""

    def __init__(self, delay: float | timedelta | None = None, reason: str = "the handler asked for a retry") -> None:
        super().__init__(reason)
        self.delay = None if delay is None else checked_delay(delay)


class Snooze(Signal):
    """Run again after `delay` (seconds or timedelta). The attempt is not spent."""

    def __init__(self, delay: float | timedelta) -> None:
        super().__init__(f"snoozed for {delay}")
        self.delay = checked_delay(delay)


class GiveUp(Signal):
    """End the job now as a dead letter, whatever attempts are left."""

    def __init__(self, reason: str = "the handler gave up") -> None:
        super().__init__(reason)


class CallFailed(Signal):
    """The attempt failed for a reason outside this program, such as a function that cannot be reached (F5).

    It is retried like any failure; what is kept and logged is the reason alone, without a type and without a traceback.
    """
