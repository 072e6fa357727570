"""The functions service's policy numbers, all in one place (F6, F9, F11)."""

from __future__ import annotations

from treadle.core.policies.retention import Retention
from treadle.core.policies.retry import Fixed
from treadle.core.profile import Profile

DAY = 24 * 3600.0
RETRY_DELAY = 5.0
LEASE = 450.0
TIMEOUT = 400.0
RETENTION_DAYS = 14.0

FUNCTIONS = Profile(
    name="functions",
    max_attempts=3,
    retry=Fixed(RETRY_DELAY),
    lease=LEASE,
    timeout=TIMEOUT,
    warn_after=None,
    max_run=LEASE,
    retention=Retention(done=RETENTION_DAYS * DAY, dead=None, keyed=RETENTION_DAYS * DAY),
    renews=False,
)
CONCURRENCY = 10
POLL_INTERVAL = 1.0
GRACE = 30.0
MAX_DELAY = 2_592_000.0  # thirty days
MAX_ATTEMPTS = 100
LIST_DEFAULT, LIST_MOST = 50, 500
REQUEUE_MOST = 1000
