"""Counts: what this process did since its start, by job name and route."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.functions.metrics.capped import OTHER, Capped
from treadle.functions.metrics.histogram import CLAIM_BOUNDS, HTTP_BOUNDS, RUN_BOUNDS, Histogram

OUTCOMES: dict[type[Outcome], str] = {Done: "done", RetryAfter: "retry", Dead: "dead", Released: "released"}
MOST_REQUESTS = 1000


@dataclass(slots=True)
class Attempts:
    """The attempts at jobs of one name: how long they took, and how many of them became what."""

    seconds: Histogram = field(default_factory=lambda: Histogram(RUN_BOUNDS))
    outcomes: dict[type[Outcome], int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))

    def copy(self) -> Attempts:
        """The same counts, which no longer change."""
        return Attempts(self.seconds.copy(), self.outcomes.copy())


@dataclass(slots=True)
class Count:
    """A number that goes up."""

    value: int = 0


@dataclass(slots=True)
class Counts:
    """Everything that is counted. All of it belongs to one thread; another gets a copy."""

    claimed_jobs: int = 0
    claims: Histogram = field(default_factory=lambda: Histogram(CLAIM_BOUNDS))
    attempts: dict[str, Attempts] = field(default_factory=lambda: Capped(Attempts, OTHER))
    # By job name; then by kind (job, direct) and what was answered (2xx, none).
    calls: dict[str, dict[tuple[str, str], int]] = field(default_factory=lambda: Capped(dict, OTHER))
    requests: dict[tuple[str, str, str], Count] = field(
        default_factory=lambda: Capped(Count, (OTHER, OTHER, OTHER), MOST_REQUESTS)
    )
    request_seconds: dict[tuple[str, str], Histogram] = field(
        default_factory=lambda: Capped(lambda: Histogram(HTTP_BOUNDS), (OTHER, OTHER))
    )

    def copy(self) -> Counts:
        """The same counts, which no longer change."""
        return Counts(
            claimed_jobs=self.claimed_jobs,
            claims=self.claims.copy(),
            attempts={name: attempts.copy() for name, attempts in self.attempts.items()},
            calls={name: calls.copy() for name, calls in self.calls.items()},
            requests={key: Count(count.value) for key, count in self.requests.items()},
            request_seconds={key: seconds.copy() for key, seconds in self.request_seconds.items()},
        )
