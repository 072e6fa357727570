"""Cron schedules of the library: stored, fired once each time, caught up once, skipped while unfinished (T5 to T14)."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from treadle import Conflict, InvalidArgument, NotFound, Tasks
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.memory import MemoryStore
from treadle.stores.sqlite import SQLiteStore
from treadle.testing import ManualClock

START = datetime(2026, 1, 1, 0, 2, tzinfo=UTC)


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request, tmp_path):
    stores = []

    def make():
        stores.append(MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / f"{len(stores)}.db"))
        return stores[-1]

    yield make

    async def close():
        for store in stores:
            await store.close()

    asyncio.run(close())


def app(store, clock, expression="*/5 * * * *", tz="UTC", payload=None, name="report"):
    tasks = Tasks(store, clock=clock)
    tasks.handle("job", lambda payload: None)
    tasks.cron(name, expression, "job", payload, tz=tz)
    return tasks


def run(main):
    return asyncio.run(asyncio.wait_for(main, 30))


async def runs(tasks):
    """When the jobs were made, oldest first."""
    return [job.created_at for job in reversed(await tasks.list())]


def test_a_new_schedule_has_no_history_and_fires_at_its_next_time(make_store):
    """Scenario 40: installed and restarted, nothing runs before the first time comes."""

    async def main():
        store, clock = make_store(), ManualClock(datetime(2026, 6, 15, 12, tzinfo=UTC))
        for _ in range(4):
            assert await app(store, clock, "0 0 1 * *").drain() == 0
            clock.advance(600)
        schedule = await app(store, clock, "0 0 1 * *").schedules.get("report")
        assert (schedule.next_at, schedule.last_at) == (datetime(2026, 7, 1, tzinfo=UTC), None)

    run(main())


def test_each_time_fires_once_and_the_job_carries_its_schedule(make_store):
    async def main():
        clock = ManualClock(START)
        tasks = app(make_store(), clock, payload={"a": [1]})
        for _ in range(16):
            await tasks.drain()
            clock.advance(60)
        jobs = await tasks.list()
        assert [job.created_at.minute for job in reversed(jobs)] == [5, 10, 15]
        assert {(job.payload["a"][0], job.schedule, job.state.value) for job in jobs} == {(1, "cron:report", "done")}

    run(main())


def test_what_was_missed_is_made_up_once(make_store):
    """Scenario 37: of 72 missed times one is made up at the start, and the next comes on time."""

    async def main():
        store, clock = make_store(), ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        await app(store, clock).drain()
        clock.advance(2 * 60)
        clock.advance(6 * 3600 + 60)
        tasks = app(store, clock)
        await tasks.drain()
        await tasks.drain()
        assert await runs(tasks) == [datetime(2026, 1, 1, 6, 3, tzinfo=UTC)]
        clock.advance(119)
        assert await tasks.drain() == 0
        clock.advance(1)
        assert await tasks.drain() == 1

    run(main())


def test_while_the_last_firing_is_unfinished_the_next_ones_are_skipped(make_store):
    """Scenario 43: runs of 150 s under `* * * * *` start at 00:01, 00:04 and 00:07, and no copy ever waits beside one."""

    async def main():
        store, clock = make_store(), ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        tasks = app(store, clock, "* * * * *")
        await tasks.drain()
        starts, running = [], None
        for second in range(0, 510, 30):
            if running is not None and second == running[1]:
                await store.finish([Ending(running[0], Done())], now=clock.now())
                running = None
            await tasks._engine().scheduler.run_once()
            claimed = await store.claim(f"t{second}", [Demand(4)], worker="w", lease=3600, now=clock.now())
            if claimed.jobs:
                assert running is None
                starts.append(second // 60)
                running = (Claim(claimed.jobs[0].id, f"t{second}"), second + 150)
            clock.advance(30)
        assert starts == [1, 4, 7]

    run(main())


def test_a_changed_expression_or_zone_computes_the_next_run_anew(make_store):
    """Scenario 47: the zone changes, nothing fires at the old time, nothing is made up, also after a restart."""

    async def main():
        store, clock = make_store(), ManualClock(datetime(2026, 7, 1, 0, 30, tzinfo=UTC))
        berlin = app(store, clock, "0 3 * * *", "Europe/Berlin")
        await berlin.drain()
        assert (await berlin.schedules.get("report")).next_at == datetime(2026, 7, 1, 1, tzinfo=UTC)
        for _ in range(2):
            tasks = app(store, clock, "0 3 * * *", "America/New_York")
            await tasks.drain()
            assert (await tasks.schedules.get("report")).next_at == datetime(2026, 7, 1, 7, tzinfo=UTC)
            clock.advance(5400)
        assert await runs(tasks) == []

    run(main())


def test_the_same_registration_changes_nothing_and_another_payload_only_the_payload(make_store):
    async def main():
        store, clock = make_store(), ManualClock(START)
        tasks = app(store, clock, payload={"a": 1})
        await tasks.drain()
        first = await tasks.schedules.get("report")
        for _ in range(5):
            await app(store, clock, payload={"a": 1}).drain()
        assert await tasks.schedules.get("report") == first
        clock.advance(60)
        await app(store, clock, payload={"a": 2}).drain()
        second = await tasks.schedules.get("report")
        assert (second.next_at, second.revision) == (first.next_at, 2)
        assert second.job.payload_json == '{"a":2}'

    run(main())


def test_pause_resume_run_now_and_delete(make_store):
    async def main():
        clock = ManualClock(START)
        tasks = app(make_store(), clock)
        await tasks.drain()
        schedules = tasks.schedules
        await schedules.pause("report")
        clock.advance(3600)
        assert await tasks.drain() == 0
        resumed = await schedules.resume("report")
        assert resumed.next_at == START + timedelta(minutes=63)
        assert await tasks.drain() == 0  # what passed while it was paused by hand is not made up (T10)
        enqueued = await schedules.run_now("report")
        with pytest.raises(Conflict, match="still pending"):
            await schedules.run_now("report")
        assert await tasks.drain() == 1
        assert (await tasks.get(enqueued.id)).schedule == "cron:report"
        assert [one.name async for one in schedules.iterate()] == ["report"]
        await schedules.delete("report")
        clock.advance(3600)
        assert await tasks.drain() == 0
        for call in (schedules.delete, schedules.pause, schedules.resume, schedules.run_now, schedules.get):
            with pytest.raises(NotFound, match="no schedule 'report'"):
                await call("report")

    run(main())


def test_a_clock_that_jumps_forward_and_back_leaves_no_silence_and_no_storm(make_store):
    async def main():
        clock = JumpingClock(datetime(2026, 1, 1, 10, tzinfo=UTC))
        tasks = app(make_store(), clock)
        await tasks.drain()
        clock.jump(7200)
        assert await tasks.drain() == 1
        assert await tasks.drain() == 0
        clock.jump(-7140)
        assert await tasks.drain() == 0
        assert (await tasks.schedules.get("report")).next_at == datetime(2026, 1, 1, 10, 5, tzinfo=UTC)
        clock.jump(240)
        assert await tasks.drain() == 1

    class JumpingClock:
        def __init__(self, now):
            self._now = now

        def now(self):
            return self._now

        def jump(self, seconds):
            self._now += timedelta(seconds=seconds)

    run(main())


def test_a_background_scheduler_sleeps_until_the_time_and_sees_changes(make_store):
    async def main():
        clock = ManualClock(START)
        tasks = Tasks(make_store(), clock=clock)
        ran = asyncio.Event()
        loop = asyncio.get_running_loop()
        tasks.handle("job", lambda payload: loop.call_soon_threadsafe(ran.set))
        tasks.cron("report", "*/5 * * * *", "job")
        await tasks.start()
        clock.advance(180)
        await asyncio.wait_for(ran.wait(), 10)
        await tasks.close()

    run(main())


@pytest.mark.parametrize(
    "arguments, options, told",
    [
        (("report", "@daily", "job"), {}, "@daily"),
        (("report", "0 0 30 2 *", "job"), {}, "never"),
        (("report", "* * * * * *", "job"), {}, "five"),
        (("report", "0 3 * * *", "job"), {"tz": "Mars/Olympus"}, "Mars/Olympus"),
        (("", "0 3 * * *", "job"), {}, "schedule name"),
        (("report", "0 3 * * *", "plugin:x"), {}, "reserved"),
        (("report", "0 3 * * *", "job", {1}), {}, "not JSON"),
        (("report", "0 3 * * *", "job"), {"priority": 5000}, "priority"),
    ],
)
def test_a_bad_registration_is_refused_and_stores_nothing(arguments, options, told):
    async def main():
        tasks = Tasks("memory:")
        tasks.handle("job", lambda payload: None)
        with pytest.raises(InvalidArgument, match=told):
            tasks.cron(*arguments, **options)
        await tasks.drain()
        assert [one async for one in tasks.schedules.iterate()] == []
        await tasks.start()
        with pytest.raises(InvalidArgument, match="before start"):
            tasks.cron("report", "0 3 * * *", "job")
        await tasks.stop()

    run(main())
