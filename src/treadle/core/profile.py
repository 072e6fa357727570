"""A profile: the frozen bundle of policies of a queue. The three faces differ in these values, not in mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.policies.retention import Retention
from treadle.core.policies.retry import RetryPolicy


@dataclass(frozen=True, slots=True)
class Profile:
    """What holds for every job of a queue unless the job or its handler says otherwise. Durations are seconds.

    `renews` False means one lease from the claim on, which nothing prolongs (F7).
    """

    name: str
    max_attempts: int
    retry: RetryPolicy
    lease: float
    timeout: float | None
    warn_after: float | None
    max_run: float
    retention: Retention
    renews: bool = True
