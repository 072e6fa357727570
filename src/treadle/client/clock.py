"""The clock of calls: durations are what a client counts in, and no time of day (only this file of the client reads one)."""

from __future__ import annotations

import time


def monotonic() -> float:
    """Seconds since some moment, never going back."""
    return time.monotonic()
