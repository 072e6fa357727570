"""Cron schedules of the library: stored, fired once each time, caught up once, skipped while unfinished (T5 to T14)."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from treadle import Conflict, Cron, InvalidArgument, NotFound, StoreUnavailable, Tasks
from treadle.core.job import NewJob
from treadle.core.outcome import Done
from treadle.core.schedule import Schedule
from treadle.core.store import Claim, Demand, Ending
from treadle.engine import scheduler as scheduling
from treadle.stores.memory import MemoryStore
from treadle.stores.sqlite import SQLiteStore
from treadle.testing import FaultyStore, ManualClock

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


class JumpingClock:
    def __init__(self, now):
        self._now = now

    def now(self):
        return self._now

    def jump(self, seconds):
        self._now += timedelta(seconds=seconds)


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
        assert (await schedules.get("report")).last_at is None
        enqueued = await schedules.run_now("report")
        with pytest.raises(Conflict, match="still pending"):
            await schedules.run_now("report")
        assert replace(resumed, last_at=clock.now(), revision=resumed.revision + 1) == await schedules.get("report")
        assert await tasks.drain() == 1
        assert (await tasks.get(enqueued.id)).schedule == "cron:report"
        assert (
            [one.name async for one in schedules.iterate()] == [one.name for one in await schedules.list("rep")] == ["report"]
        )
        assert await schedules.list("x") == []
        await schedules.pause("report")
        await schedules.run_now("report")  # by hand a paused one runs too
        assert await tasks.drain() == 1
        assert (await schedules.get("report")).paused
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
        schedule = await tasks.schedules.get("report")
        assert (schedule.next_at, schedule.last_at) == (datetime(2026, 1, 1, 10, 5, tzinfo=UTC), clock.now())
        clock.jump(240)
        assert await tasks.drain() == 1

    run(main())


def test_what_was_skipped_made_or_resumed_while_the_clock_was_ahead_is_not_silent_either(make_store, caplog):
    async def main():
        clock = JumpingClock(datetime(2026, 1, 1, 10, 4, tzinfo=UTC))
        tasks = app(make_store(), clock)
        tasks.cron("resumed", "*/5 * * * *", "another")
        await tasks.drain()
        await tasks.schedules.run_now("report")  # unfinished, so that the firings of "report" are skipped
        await tasks.schedules.pause("resumed")
        clock.jump(7200)
        scheduler = tasks._engine().scheduler
        await scheduler.run_once()
        await tasks.schedules.resume("resumed")
        await tasks.schedules.put("made", Cron("*/5 * * * *"), NewJob("", "another"))
        await scheduler.run_once()
        assert {one.next_at.hour for one in await tasks.schedules.list()} == {12}
        clock.jump(-7200)
        await scheduler.run_once()
        assert {one.next_at for one in await tasks.schedules.list()} == {datetime(2026, 1, 1, 10, 5, tzinfo=UTC)}
        told = [record.getMessage() for record in caplog.records if "set back" in record.getMessage()]
        assert told == ["the clock was set back; the next run of 3 schedule(s) is computed anew: 'made', 'report', 'resumed'"]
        clock.jump(-30)
        await scheduler.run_once()  # a small correction is none
        assert len([record for record in caplog.records if "set back" in record.getMessage()]) == 1

    run(main())


def test_a_small_step_back_fires_no_time_twice(make_store):
    async def main():
        clock = JumpingClock(datetime(2026, 1, 1, 10, 4, tzinfo=UTC))
        tasks = app(make_store(), clock)
        await tasks.drain()
        clock.jump(61)
        assert await tasks.drain() == 1
        for seconds in (-30, 30, 50, -80, 40):  # the larger step begins well after the firing, and ends shortly before it
            clock.jump(seconds)
            assert await tasks.drain() == 0

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


def test_a_paused_schedule_stays_paused_through_restarts_and_changes(make_store):
    async def main():
        store, clock = make_store(), ManualClock(START)
        await app(store, clock).drain()
        await app(store, clock).schedules.pause("report")
        for expression in ("*/5 * * * *", "*/10 * * * *"):
            clock.advance(3600)
            tasks = app(store, clock, expression)
            assert await tasks.drain() == 0
            schedule = await tasks.schedules.get("report")
            assert (schedule.paused, schedule.expression) == (True, expression)

    run(main())


def test_a_time_missed_before_the_times_changed_is_not_made_up_but_one_before_the_payload_changed_is(make_store):
    """Scenario 47: catching up asks the present expression and zone; T10 asks no more of a new payload than of the old one."""

    async def main():
        for change, ran in (({"tz": "Asia/Tokyo"}, []), ({"payload": "new"}, ["new"])):
            store, clock = make_store(), ManualClock(datetime(2026, 7, 1, tzinfo=UTC))
            await app(store, clock, "0 3 * * *").drain()
            clock.advance(4 * 3600)
            tasks = app(store, clock, "0 3 * * *", **change)
            await tasks.drain()
            await tasks.drain()
            assert [job.payload for job in await tasks.list()] == ran

    run(main())


def test_registering_again_in_the_moment_of_a_firing_fires_no_time_twice(make_store):
    """T12: what a deployment read before the firing must not put the schedule back."""

    async def main():
        clock = ManualClock(START)
        store = FaultyStore(make_store())
        running = app(store, clock)
        await running.drain()
        gate = store.hold("put_schedule", times=1)
        deployed = app(store, clock, payload="new")
        deployment = asyncio.create_task(deployed.run_once())
        while store.calls["put_schedule"] < 2:
            await asyncio.sleep(0)
        clock.advance(180)
        assert await running.drain() == 1
        gate.set()
        await deployment
        assert await running.drain() == 0
        assert await runs(running) == [START + timedelta(minutes=3)]
        schedule = await running.schedules.get("report")
        assert (schedule.job.payload_json, schedule.last_at) == ('"new"', START + timedelta(minutes=3))

    run(main())


@pytest.mark.parametrize("change", ["pause", "delete"])
def test_what_is_paused_or_deleted_in_the_moment_of_a_firing_does_not_fire(make_store, change):
    """T14: the scheduler has read the schedule as due, and comes too late."""

    async def main():
        clock = ManualClock(START)
        store = FaultyStore(make_store())
        tasks = app(store, clock)
        await tasks.drain()
        clock.advance(180)
        gate = store.hold("fire", times=1)
        firing = asyncio.create_task(tasks.run_once())
        while not store.calls["fire"]:
            await asyncio.sleep(0)
        await getattr(tasks.schedules, change)("report")
        gate.set()
        assert await firing == 0
        assert await tasks.list() == []

    run(main())


def test_a_firing_whose_answer_was_lost_is_not_repeated(make_store):
    async def main():
        clock = ManualClock(START)
        store = FaultyStore(make_store())
        tasks = app(store, clock)
        await tasks.drain()
        clock.advance(180)
        store.fail_after("fire", times=1)
        with pytest.raises(StoreUnavailable):
            await tasks.drain()
        assert await tasks.drain() == 1
        assert await tasks.drain() == 0

    run(main())


def test_the_payload_is_frozen_at_creation_and_a_missing_one_is_null(make_store):
    """T13."""

    async def main():
        clock, payload = ManualClock(START), {"a": [1]}
        tasks = app(make_store(), clock, payload=payload)
        tasks.cron("bare", "*/5 * * * *", "job")
        payload["a"].append(2)
        await tasks.drain()
        clock.advance(180)
        await tasks.drain()
        assert {job.schedule: job.payload for job in await tasks.list()} == {"cron:report": {"a": [1]}, "cron:bare": None}

    run(main())


def test_the_jobs_have_the_options_of_the_schedule_and_the_rules_of_their_handler(make_store):
    """Scenario 66, for the library: nothing is lost on the way through a schedule."""

    async def main():
        clock = ManualClock(START)
        tasks = Tasks(make_store(), clock=clock, retry=lambda attempt: 0)
        seen = []

        @tasks.handler("job", max_attempts=2, queue="nights")
        async def job(payload, ctx):
            seen.append((payload, ctx.attempt))
            raise ValueError("no")

        tasks.cron("one", "*/5 * * * *", "job", 1, priority=7)
        tasks.cron("two", "*/5 * * * *", "job", 2, max_attempts=1)
        await tasks.drain()
        clock.advance(180)
        await tasks.drain()
        assert seen == [(1, 1), (2, 1), (1, 2)] or seen == [(1, 1), (1, 2), (2, 1)]
        found = {one.schedule: (one.queue, one.priority, one.attempts, one.state) for one in await tasks.list()}
        assert found == {"cron:one": ("nights", 7, 2, "dead"), "cron:two": ("nights", 0, 1, "dead")}

    run(main())


def test_a_job_that_nobody_handles_waits_once_and_keeps_the_next_firings_away(make_store):
    async def main():
        clock = ManualClock(START)
        tasks = Tasks(make_store(), clock=clock)
        tasks.cron("report", "*/5 * * * *", "unknown")
        for _ in range(4):
            assert await tasks.drain() == 0
            clock.advance(300)
        assert [job.state for job in await tasks.list()] == ["pending"]
        assert await tasks.pending_names() == ["unknown"]
        tasks.handle("unknown", lambda payload: None)
        assert await tasks.drain() == 1  # and no firing beside it, since it was unfinished when its time came
        clock.advance(300)
        assert await tasks.drain() == 1

    run(main())


def test_five_deployments_by_several_processes_leave_two_schedules_for_one_job_as_they_are(make_store):
    """Scenario 124: next runs unchanged, two jobs at 06:00 in Stockholm, and one once one of them is deleted."""

    async def main():
        store, clock = make_store(), ManualClock(datetime(2026, 6, 1, 0, tzinfo=UTC))

        def deployed():
            tasks = Tasks(store, clock=clock)
            tasks.handle("job", lambda payload: None)
            for name in ("a", "b"):
                tasks.cron(name, "0 6 * * *", "job", {name: 1}, tz="Europe/Stockholm")
            return tasks

        for _ in range(5):
            await asyncio.gather(*(deployed().run_once() for _ in range(4)))
            clock.advance(600)
        tasks = deployed()
        stored = [(one.name, one.next_at, one.revision) for one in await tasks.schedules.list()]
        assert stored == [(name, datetime(2026, 6, 1, 4, tzinfo=UTC), 1) for name in ("a", "b")]
        clock.advance(4 * 3600)
        await asyncio.gather(*(deployed().run_once() for _ in range(4)))
        assert sorted(job.schedule for job in await tasks.list()) == ["cron:a", "cron:b"]
        await tasks.schedules.delete("a")
        clock.advance(24 * 3600)
        await tasks._engine().scheduler.run_once()
        assert sorted(job.schedule for job in await tasks.list()) == ["cron:a", "cron:b", "cron:b"]

    run(main())


def test_a_schedule_that_cannot_be_read_here_is_told_once_and_stops_no_other(make_store, caplog, monkeypatch):
    """A zone that this machine lacks, for more schedules than are read at once, all due before the good one."""
    monkeypatch.setattr(scheduling, "BATCH", 3)

    async def main():
        store, clock = make_store(), ManualClock(START)
        tasks = app(store, clock)
        await tasks.drain()
        odd = replace(Schedule.of("", Cron("0 3 * * *"), NewJob("", "job")), tz="Mars/Olympus", next_at=START)
        for number in range(7):
            await store.put_schedule(replace(odd, name=f"odd-{number}"))
        clock.advance(180)
        for _ in range(4):
            await tasks.drain()
        assert await runs(tasks) == [START + timedelta(minutes=3)]
        told = [record for record in caplog.records if "cannot be fired by this worker" in record.getMessage()]
        assert len(told) == 7 and all("Mars/Olympus" in record.getMessage() for record in told)
        assert {record.levelno for record in told} == {logging.ERROR}
        await app(store, clock, name="odd-0").drain()  # registered anew with a zone that there is
        assert (await tasks.schedules.get("odd-0")).tz == "UTC"

    run(main())


def test_more_than_a_batch_is_fired_in_one_round(make_store, monkeypatch):
    monkeypatch.setattr(scheduling, "BATCH", 4)

    async def main():
        store, clock = make_store(), ManualClock(START)
        tasks = Tasks(store, clock=clock)
        for number in range(30):
            tasks.cron(f"s{number}", "*/5 * * * *", "job")
        await tasks.drain()
        clock.advance(180)
        await asyncio.gather(*(tasks._engine().scheduler.run_once() for _ in range(3)))
        assert len({job.schedule for job in await tasks.list()}) == len(await tasks.list()) == 30

    run(main())


def test_at_the_end_of_the_calendar_a_schedule_has_no_next_run(make_store):
    async def main():
        clock = ManualClock(datetime(9999, 12, 27, 23, tzinfo=UTC))
        tasks = app(make_store(), clock, "0 0 * * *")
        await tasks.drain()
        clock.advance(3600)
        assert await tasks.drain() == 1
        schedule = await tasks.schedules.get("report")
        assert (schedule.next_at, schedule.last_at) == (None, clock.now())
        clock.advance(86_400)
        assert await tasks.drain() == 0
        await tasks.schedules.pause("report")
        assert (await tasks.schedules.resume("report")).next_at is None
        await tasks.schedules.run_now("report")
        assert await tasks.drain() == 1

    run(main())


def test_the_scheduler_sleeps_until_the_very_next_time_its_own_firing_included(make_store):
    """Also where it may sleep for much longer, and the firing that was just advanced is the next one."""

    async def main():
        clock = ManualClock(START)
        tasks = Tasks(make_store(), clock=clock, poll_interval=300)
        tasks.cron("often", "* * * * *", "job")
        tasks.cron("seldom", "0 0 1 1 *", "job")
        scheduler = tasks._engine().scheduler
        await tasks.run_once()
        assert scheduler.interval == 60
        clock.advance(59.5)
        await scheduler.run_once()
        assert scheduler.interval == 0.5
        clock.advance(10.5)  # ten seconds late
        await scheduler.run_once()
        assert scheduler.interval == 50
        await tasks.schedules.pause("often")
        await scheduler.run_once()
        assert scheduler.interval == 300

    run(main())


def test_by_the_real_clock_each_second_comes_on_time_whatever_the_poll_interval(make_store):
    """A round that sets when the next one begins is followed by it at that time, and not one round later (T16)."""

    async def main():
        tasks = Tasks(make_store(), poll_interval=60)
        late, three = [], asyncio.Event()

        @tasks.handler("job")
        async def job(payload, ctx):
            late.append(ctx.job.created_at.microsecond / 1_000_000)
            if len(late) == 3:
                three.set()

        await tasks.schedules.put("often", Cron("* * * * * *", seconds=True), NewJob("", "job"))
        await tasks.start()
        await asyncio.wait_for(three.wait(), 20)
        await tasks.close()
        assert sorted(late)[1] < 0.5, late  # milliseconds on an idle machine, which the benchmark measures

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
