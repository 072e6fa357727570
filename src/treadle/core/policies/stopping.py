"""How often a job may be interrupted before an interruption counts as an attempt (E24, P8)."""

from __future__ import annotations

COUNTED_FROM = 3


def counts(interruptions: int) -> bool:
    """Whether the interruption that brings the job to this many counts as a failed attempt."""
    return interruptions >= COUNTED_FROM
