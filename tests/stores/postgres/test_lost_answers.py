"""What was done by a try whose answer was lost is answered by the next one, so that it is logged, and others are woken."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from treadle.core.job import NewJob, State
from treadle.core.outcome import RetryAfter
from treadle.core.schedule import Schedule
from treadle.core.store import Claim, Demand, Firing, Reclaim
from treadle.stores.postgres import PostgresStore
from treadle.stores.postgres.runner import Runner, T, Work
from treadle.testing.factory import uuid7

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each call the first answer is lost after it was given, and the call is repeated."""
    run = Runner.run

    async def twice(runner: Runner, work: Work[T], *, again: bool) -> T:
        if again:
            await run(runner, work, again=False)
        return await run(runner, lambda session, _: work(session, again), again=again)

    monkeypatch.setattr(Runner, "run", twice)


@pytest.mark.usefixtures("losing")
def test_a_reclaim_that_is_repeated_tells_what_was_taken_back(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url, listen=False)
        woken: list[None] = []
        await store.enqueue([NewJob(uuid7(number), "job") for number in range(3)])
        await store.claim("t", [Demand(2)], worker="w", lease=1.0)
        await store.claim("u", [Demand(1)], worker="w", lease=600.0)
        later = datetime.now(UTC) + timedelta(seconds=60)
        expired = await store.expired(10, now=later)
        await store.listen(lambda: woken.append(None))
        outcome = RetryAfter(0.0, "E: lost")
        claims = {Claim(uuid7(number), "t") for number in range(2)}
        assert await store.reclaim([Reclaim(one, outcome) for one in expired], now=later) == claims
        assert woken
        [job] = await store.get([uuid7(0)])
        assert (job.state, len(job.failures)) == (State.PENDING, 1)
        await store.close()

    asyncio.run(main())


@pytest.mark.usefixtures("losing")
def test_a_firing_that_is_repeated_tells_what_was_enqueued(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url, listen=False)
        woken: list[None] = []
        await store.put_schedule(Schedule("s", "* * * * *", "UTC", False, NewJob("", "job"), next_at=NOW))
        schedule = await store.get_schedule("s")
        assert schedule is not None
        await store.listen(lambda: woken.append(None))
        firing = Firing(schedule, NOW + timedelta(minutes=1), NewJob(uuid7(1), "job"))
        [fired] = await store.fire([firing], now=NOW)
        assert fired is not None
        assert (fired.id, fired.created) == (uuid7(1), True)
        assert woken
        await store.close()

    asyncio.run(main())
