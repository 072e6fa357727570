"""Two claims of one job in one batch, as after a reclaim: only the one that holds counts (E21, E22)."""

import asyncio
import itertools

import pytest

from treadle.core.job import NewJob, State
from treadle.core.outcome import Dead, Done, RetryAfter
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.sqlite import SQLiteStore

STALE, HELD, OTHER = Claim("1", "stale"), Claim("1", "t"), Claim("2", "t")


async def claimed():
    store = SQLiteStore(":memory:")
    await store.enqueue([NewJob("1", "a"), NewJob("2", "a")])
    await store.claim("t", [Demand(2)], worker="w", lease=60)
    return store


@pytest.mark.parametrize("claims", sorted(set(itertools.permutations([STALE, HELD, HELD, OTHER]))))
def test_of_two_claims_of_one_job_the_one_that_holds_is_renewed_and_finished(claims):
    async def main():
        store = await claimed()
        assert await store.renew(claims, 60) == {HELD, OTHER}
        outcomes = {STALE: Dead("late"), HELD: Done(), OTHER: RetryAfter(5.0, "E: no")}
        assert await store.finish([Ending(claim, outcomes[claim]) for claim in claims]) == {HELD, OTHER}
        one, two = await store.get(["1", "2"])
        assert (one.state, one.failures) == (State.DONE, ())
        assert (two.state, [failure.error for failure in two.failures]) == (State.PENDING, ["E: no"])
        assert [(failure.attempt, failure.worker) for failure in two.failures] == [(1, "w")]
        assert await store.finish([Ending(claim, Dead("E")) for claim in claims]) == set()
        await store.close()

    asyncio.run(main())
