"""What sending a dead letter round again does to its count (E17)."""

from __future__ import annotations

from enum import StrEnum


class RedrivePolicy(StrEnum):
    """Whether the count starts again from 0, or is kept so that the job gets exactly one more try."""

    RESET = "reset"
    KEEP = "keep"
