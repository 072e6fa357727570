"""What sending a dead letter round again does to its count (E17)."""

from __future__ import annotations

from enum import StrEnum

from treadle.core.policies.limits import FUNCTIONS_QUEUE


class RedrivePolicy(StrEnum):
    """Whether the count starts again from 0, or is kept so that the job gets exactly one more try."""

    RESET = "reset"
    KEEP = "keep"

    @classmethod
    def of_queue(cls, queue: str) -> RedrivePolicy:
        """The rule of a queue, known without its worker: functions keep the count, all others start again."""
        return cls.KEEP if queue == FUNCTIONS_QUEUE else cls.RESET
