"""The library's policy numbers, all in one place (E4, E16, E17, E18)."""

from __future__ import annotations

from treadle.core.policies.retention import Retention
from treadle.core.policies.retry import Exponential
from treadle.core.profile import Profile

LIBRARY = Profile(
    name="library",
    max_attempts=5,
    retry=Exponential(base=1.0, cap=900.0),
    lease=60.0,
    timeout=None,
    warn_after=30.0,
    max_run=24 * 3600.0,
    retention=Retention(),
)
CONCURRENCY = 1
POLL_INTERVAL = 1.0
GRACE = 30.0
PRUNE_AFTER = 7 * 24 * 3600.0
