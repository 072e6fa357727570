"""Every number of the library that is a policy, pinned (E4, E16, E18, E29)."""

from treadle.core.policies.retention import Retention
from treadle.core.policies.retry import Exponential
from treadle.core.profile import Profile
from treadle.tasks import profile


def test_the_library_profile():
    assert profile.LIBRARY == Profile(
        name="library",
        max_attempts=5,
        retry=Exponential(1, 900, 0),
        lease=60,
        timeout=None,
        warn_after=30,
        max_run=86_400,
        retention=Retention(None, None, None),
    )
    assert (profile.CONCURRENCY, profile.POLL_INTERVAL, profile.PRUNE_AFTER) == (1, 1.0, 604_800)
