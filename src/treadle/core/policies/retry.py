"""How long to wait before the next try (E16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeAlias

from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import checked_delay, checked_duration

Random: TypeAlias = Callable[[], float]


class RetryPolicy(Protocol):
    """A value that says how long to wait after a failed attempt."""

    def delay(self, attempt: int, random: Random) -> float:
        """Seconds to wait after `attempt` (from 1) failed; `random` gives numbers from 0 up to 1."""
        ...


@dataclass(frozen=True, slots=True)
class Exponential:
    """`base` seconds, doubled with each attempt, at most `cap`, then spread by plus or minus `jitter` (0 to 1)."""

    base: float
    cap: float
    jitter: float = 0.0

    def __post_init__(self) -> None:
        checked_duration(self.base, "base")
        checked_duration(self.cap, "cap")
        if not 0 <= checked_delay(self.jitter, "jitter") <= 1:
            raise InvalidArgument(f"jitter must be from 0 to 1, not {self.jitter!r}")

    def delay(self, attempt: int, random: Random) -> float:
        """Seconds to wait after `attempt` failed, rounded to the millisecond."""
        # Beyond 2^1023 a float overflows; the cap was reached long before.
        wait = min(self.base * 2.0 ** min(attempt - 1, 1000), self.cap)
        if self.jitter:
            wait *= 1 - self.jitter + 2 * self.jitter * random()
        return round(wait, 3)


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same `seconds` after each attempt."""

    seconds: float

    def __post_init__(self) -> None:
        checked_delay(self.seconds, "the retry delay")

    def delay(self, attempt: int, random: Random) -> float:
        """The fixed seconds, rounded to the millisecond."""
        return round(self.seconds, 3)


@dataclass(frozen=True, slots=True)
class Computed:
    """A function of the attempt as a policy; what it returns is checked like any delay."""

    function: Callable[[int], float | timedelta]

    def delay(self, attempt: int, random: Random) -> float:
        """What the function answers, rounded to the millisecond. Raises `InvalidArgument` where that is no delay."""
        return round(checked_delay(self.function(attempt), "the retry delay"), 3)


def retry_policy(value: RetryPolicy | Callable[[int], float | timedelta]) -> RetryPolicy:
    """The policy that `retry=` means: a policy value, or a callable of the attempt number."""
    if not isinstance(value, type):
        if hasattr(value, "delay"):
            return value
        if callable(value):
            return Computed(value)
    raise InvalidArgument(f"retry must be a policy such as Exponential(1, 900), or a function of the attempt, not {value!r}")
