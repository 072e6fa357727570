"""What can be watched of a worker while it runs: the hook behind metrics."""

from __future__ import annotations

from typing import Protocol

from treadle.core.job import Job
from treadle.core.outcome import Outcome


class Observer(Protocol):
    """Called in the worker's loop; it must be quick, and must not raise."""

    def claimed(self, jobs: int, seconds: float) -> None:
        """A claim was answered with so many jobs, after so many seconds."""
        ...

    def ended(self, job: Job, outcome: Outcome, seconds: float) -> None:
        """An attempt ended after so many seconds, with this outcome, which is not written yet."""
        ...

    def reclaimed(self, job: Job, outcome: Outcome) -> None:
        """A job was taken back, of whatever worker, whose lease had run out (E21)."""
        ...
