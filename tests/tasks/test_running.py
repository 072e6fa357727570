"""Running: drain and run_once, timeouts, threads, stopping, waking, unknown names, leases (E18 to E28)."""

import asyncio
import logging
import threading
import time

import pytest
from looping import run, until

from treadle import Fixed, InvalidArgument, Tasks
from treadle.core.outcome import Done
from treadle.core.store import Claim, Ending
from treadle.stores.memory import MemoryStore
from treadle.testing import ManualClock

pytestmark = pytest.mark.timeout(60)


async def state_of(tasks, enqueued):
    return (await tasks.get(enqueued.id)).state


# -- drain and run_once


def test_run_once_runs_each_due_job_once_though_it_is_due_again_at_once():
    async def main():
        tasks = Tasks("memory:", retry=Fixed(0), concurrency=3)
        starts = []

        @tasks.handler("job")
        async def handler(payload):
            starts.append(payload)
            raise ValueError

        for number in range(10):
            await tasks.enqueue("job", number, priority=number)
        assert await tasks.run_once() == 10
        assert sorted(starts) == list(range(10))
        assert {(job.state, job.attempts) for job in await tasks.list()} == {("pending", 1)}
        await tasks.drain()
        assert {(job.state, job.attempts) for job in await tasks.list()} == {("dead", 5)}

    run(main())


def test_drain_does_not_wait_for_what_is_due_later():
    async def main():
        tasks = Tasks("memory:")
        tasks.handle("job", lambda payload: None)
        await tasks.enqueue("job", delay=3600)
        assert await tasks.drain() == 0
        assert (await tasks.stats()).pending == 1

    run(main())


def test_one_object_serves_several_event_loops_one_after_the_other():
    tasks = Tasks("memory:")
    seen = []
    tasks.handle("job", lambda payload: seen.append(payload))

    async def main(number):
        await tasks.enqueue("job", number)
        await tasks.drain()

    for number in range(3):
        run(main(number))
    assert seen == [0, 1, 2]
    assert len(tasks._engines) == 1  # those of closed loops are let go


def test_concurrency_is_kept_and_used():
    async def main():
        tasks = Tasks("memory:", concurrency=3)
        running = most = 0
        full = asyncio.Event()

        @tasks.handler("job")
        async def handler(payload):
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == 3:
                full.set()
            await full.wait()
            running -= 1

        await tasks.enqueue_many([{"name": "job"}] * 9)
        await tasks.drain()
        assert most == 3

    run(main())


def test_only_what_free_slots_can_start_is_claimed():
    async def main():
        tasks = Tasks("memory:", concurrency=2)
        go = asyncio.Event()

        @tasks.handler("job")
        async def handler(payload):
            await go.wait()

        await tasks.enqueue_many([{"name": "job"}] * 5)
        await tasks.start()
        await until(lambda: len(tasks._engine().worker.running) == 2)
        assert (await tasks.stats()).running == 2
        go.set()
        await tasks.stop()

    run(main())


# -- waking


def test_an_idle_worker_wakes_at_an_enqueue_and_not_only_at_the_poll():
    async def main():
        tasks = Tasks("memory:", poll_interval=3600)
        done = asyncio.Event()

        @tasks.handler("job")
        async def handler(payload):
            done.set()

        await tasks.start()
        await asyncio.sleep(0)
        await tasks.enqueue("job")
        await asyncio.wait_for(done.wait(), 5)
        await tasks.stop()

    run(main())


def test_an_idle_worker_sleeps_until_the_next_due_time():
    async def main():
        tasks = Tasks("memory:", poll_interval=3600)
        done = asyncio.Event()
        tasks.handle("job", lambda payload: loop.call_soon_threadsafe(done.set))
        loop = asyncio.get_running_loop()
        await tasks.start()
        await tasks.enqueue("job", delay=0.2)
        await asyncio.wait_for(done.wait(), 5)
        await tasks.stop()

    run(main())


def test_a_moved_clock_wakes_the_worker():
    async def main():
        clock = ManualClock()
        tasks = Tasks("memory:", poll_interval=3600, clock=clock)
        done = asyncio.Event()

        @tasks.handler("job")
        async def handler(payload):
            done.set()

        await tasks.start()
        await tasks.enqueue("job", delay=86_400 * 30)
        await asyncio.sleep(0)
        assert not done.is_set()
        clock.advance(86_400 * 30)
        await asyncio.wait_for(done.wait(), 5)
        await tasks.stop()

    run(main())


# -- timeouts


def test_an_async_handler_past_its_timeout_is_told_cancelled_and_failed():
    async def main():
        tasks = Tasks("memory:")
        seen = []

        @tasks.handler("job", timeout=0.05, max_attempts=1)
        async def handler(payload, ctx):
            try:
                await asyncio.Event().wait()
            finally:
                seen.append(ctx.aborted.is_set())

        enqueued = await tasks.enqueue("job")
        await tasks.drain()
        job = await tasks.get(enqueued.id)
        assert (job.state, job.last_error) == ("dead", "TimeoutError: ran longer than its timeout of 0.05 s")
        assert seen == [True]

    run(main())


def test_a_handler_that_swallows_its_cancellation_loses_its_slot_and_its_late_result():
    async def main():
        tasks = Tasks("memory:")
        release = asyncio.Event()
        ended = asyncio.Event()

        @tasks.handler("stubborn", timeout=0.05, max_attempts=1)
        async def stubborn(payload):
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    pass
            ended.set()

        @tasks.handler("other")
        async def other(payload):
            pass

        first = await tasks.enqueue("stubborn")
        second = await tasks.enqueue("other")
        await tasks.drain()
        assert [await state_of(tasks, one) for one in (first, second)] == ["dead", "done"]
        release.set()
        await ended.wait()
        await tasks.drain()
        assert await state_of(tasks, first) == "dead"

    run(main())


def test_a_timeout_of_the_worker_holds_for_handlers_without_one():
    async def main():
        tasks = Tasks("memory:", timeout=0.05)

        @tasks.handler("job", max_attempts=1)
        async def handler(payload):
            await asyncio.Event().wait()

        enqueued = await tasks.enqueue("job")
        await tasks.drain()
        assert await state_of(tasks, enqueued) == "dead"

    run(main())


def test_a_plain_handler_sees_the_sign_and_its_late_result_is_dropped():
    async def main():
        tasks = Tasks("memory:")
        seen = []
        ended = threading.Event()

        @tasks.handler("job", timeout=0.05, max_attempts=1)
        def handler(payload, ctx):
            seen.append(ctx.aborted.wait(20))
            ended.set()

        enqueued = await tasks.enqueue("job")
        await tasks.drain()
        assert await state_of(tasks, enqueued) == "dead"
        assert await asyncio.to_thread(ended.wait, 20)
        assert seen == [True]
        assert await state_of(tasks, enqueued) == "dead"

    run(main())


def test_threads_held_past_their_timeout_are_bounded_told_and_given_back(caplog):
    """Scenario 88: forty handlers that do not end; then good ones; threads never above 2 x concurrency + 8."""

    async def main():
        tasks = Tasks("memory:", concurrency=2, poll_interval=0.05)
        release = threading.Event()
        before = set(threading.enumerate())
        most = 0
        good = 0

        def handler_threads():
            return [one for one in set(threading.enumerate()) - before if one.name.startswith("treadle-handler")]

        @tasks.handler("stuck", timeout=0.02, max_attempts=1)
        def stuck(payload):
            nonlocal most
            most = max(most, len(handler_threads()))
            release.wait(20)

        @tasks.handler("good")
        def fine(payload):
            nonlocal good
            good += 1

        await tasks.enqueue_many([{"name": "stuck"}] * 40)
        await tasks.enqueue_many([{"name": "good"}] * 10)
        await tasks.start()
        await until(lambda: bound_reached(caplog))
        while (await tasks.stats()).dead < 10:  # 8 spare and 2 of the slots
            await asyncio.sleep(0)
        release.set()
        await until(lambda: good == 10)
        await tasks.stop()
        stats = await tasks.stats()
        assert (stats.dead, stats.done) == (10, 40)  # those that got a thread after the release were in time
        assert most <= 2 * 2 + 8
        await until(lambda: not handler_threads())

    def bound_reached(caplog):
        return any("threads are held by plain handlers" in record.getMessage() for record in caplog.records)

    run(main())
    assert sum("threads are held" in record.getMessage() for record in caplog.records) <= 4


def test_a_slow_job_is_warned_about_once_and_not_stopped(caplog):
    async def main():
        tasks = Tasks("memory:", warn_after=0.02)
        warned = asyncio.Event()

        @tasks.handler("slow")
        async def slow(payload):
            await until(lambda: any("has been running for" in r.getMessage() for r in caplog.records))
            seen = time.monotonic()
            await until(lambda: time.monotonic() > seen + 0.05)  # several more looks of the worker
            warned.set()

        enqueued = await tasks.enqueue("slow")
        await tasks.drain()
        assert warned.is_set()
        assert await state_of(tasks, enqueued) == "done"

    run(main())
    assert sum("has been running for" in record.getMessage() for record in caplog.records) == 1


# -- stopping


def test_stop_lets_running_jobs_finish_within_the_grace_and_claims_nothing_more():
    async def main():
        tasks = Tasks("memory:")
        started, go = asyncio.Event(), asyncio.Event()

        @tasks.handler("job")
        async def handler(payload):
            started.set()
            await go.wait()

        first, second = await tasks.enqueue("job"), await tasks.enqueue("job")
        await tasks.start()
        await started.wait()
        stopping = asyncio.create_task(tasks.stop(grace=20))
        await asyncio.sleep(0)
        go.set()
        await stopping
        assert [await state_of(tasks, one) for one in (first, second)] == ["done", "pending"]

    run(main())


def test_what_outlasts_the_grace_is_given_back_with_its_attempt():
    async def main():
        tasks = Tasks("memory:")
        started = asyncio.Event()
        reasons = []

        @tasks.handler("job", max_attempts=1)
        async def handler(payload, ctx):
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                reasons.append(ctx.aborted.reason)

        enqueued = await tasks.enqueue("job")

        async def start_and_stop():
            started.clear()
            await tasks.start()
            await started.wait()
            await tasks.stop(grace=0)
            return await tasks.get(enqueued.id)

        for stops in (1, 2):
            job = await start_and_stop()
            assert (job.state, job.attempts, job.interruptions, job.worker) == ("pending", 0, stops, None)
        job = await start_and_stop()
        assert (job.state, job.attempts, job.last_error) == ("dead", 1, "interrupted 3 times: the worker is stopping")
        assert reasons == ["the worker is stopping"] * 3

    run(main())


def test_a_job_whose_thread_still_runs_at_the_stop_is_left_to_its_lease():
    async def main():
        clock = ManualClock()
        tasks = Tasks("memory:", clock=clock, lease=60)
        started, release = threading.Event(), threading.Event()

        @tasks.handler("job")
        def handler(payload):
            started.set()
            release.wait(20)

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        assert await asyncio.to_thread(started.wait, 20)
        await tasks.stop(grace=0)
        assert await state_of(tasks, enqueued) == "running"
        release.set()
        clock.advance(61)
        await tasks.drain()
        job = await tasks.get(enqueued.id)
        assert (job.state, job.attempts) == ("done", 2)

    run(main())


def test_stop_is_safe_twice_before_start_and_a_stopped_worker_starts_again():
    async def main():
        tasks = Tasks("memory:")
        tasks.handle("job", lambda payload: None)
        await tasks.stop()
        await tasks.start()
        await tasks.start()
        await tasks.stop()
        await tasks.stop()
        enqueued = await tasks.enqueue("job")
        await tasks.drain()
        assert await state_of(tasks, enqueued) == "done"
        await tasks.close()
        await tasks.close()

    run(main())


def test_a_loop_that_is_torn_down_leaves_its_jobs_to_their_leases():
    """As at Ctrl+C without a stop: nothing is judged, nothing is lost."""
    store = MemoryStore()
    clock = ManualClock()

    async def interrupted():
        tasks = Tasks(store, clock=clock)

        @tasks.handler("job", max_attempts=1)
        async def handler(payload):
            main_task.cancel()
            await asyncio.Event().wait()

        main_task = asyncio.current_task()
        await tasks.enqueue("job")
        await tasks.start()
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())

    async def look():
        return [(job.state, job.attempts, job.last_error) for job in await Tasks(store).list()]

    assert asyncio.run(look()) == [("running", 1, None)]


# -- names


def test_a_name_nobody_handles_stays_pending_and_is_warned_about_once(caplog):
    """Scenario 90."""

    async def main():
        clock = ManualClock()
        tasks = Tasks("memory:", clock=clock)
        tasks.handle("known", lambda payload: None)
        await tasks.enqueue_many([{"name": "new-task"}] * 100)
        await tasks.start()
        for _ in range(10):
            clock.advance(10)
            await tasks.enqueue("known")
            while (await tasks.stats()).done == 0:
                await asyncio.sleep(0)
            await tasks.prune(0)
        await tasks.stop()
        waiting = await tasks.list(states=["pending"])
        assert {(job.name, job.attempts) for job in waiting} == {("new-task", 0)}
        assert len(waiting) == 100
        assert await tasks.pending_names() == ["new-task"]
        tasks.handle("new-task", lambda payload: None)
        assert await tasks.pending_names() == []
        assert await tasks.drain() == 100

    run(main())
    assert sum("'new-task' wait" in record.getMessage() for record in caplog.records) == 1


def test_a_worker_of_some_queues_leaves_the_others():
    async def main():
        store = MemoryStore()
        mails = Tasks(store, queues=["mails"])
        rest = Tasks(store)
        mails.handle("send", lambda payload: None, queue="mails")
        rest.handle("send", lambda payload: None)
        first = await mails.enqueue("send")
        second = await rest.enqueue("send")
        assert (first.job.queue, second.job.queue) == ("mails", "default")
        assert await mails.drain() == 1
        assert [await state_of(rest, one) for one in (first, second)] == ["done", "pending"]
        assert await rest.drain() == 1

    run(main())


@pytest.mark.parametrize(
    "setting",
    [
        {"concurrency": 0}, {"concurrency": True}, {"lease": 0}, {"poll_interval": -1}, {"queues": []}, {"queues": "mails"},
        {"queues": ["functions"]}, {"timeout": 0}, {"warn_after": -1}, {"retention": -1}, {"max_attempts": 0}, {"clock": 5},
        {"max_payload": 0}, {"worker_id": ""},
    ],
    ids=str,
)  # fmt: skip
def test_settings_are_checked_where_they_are_given(setting):
    with pytest.raises(InvalidArgument):
        Tasks("memory:", **setting)


# -- leases


def test_the_lease_of_a_handler_that_blocks_the_loop_is_renewed():
    async def main():
        tasks = Tasks("memory:", lease=0.3)
        starts = []

        @tasks.handler("job")
        async def handler(payload):
            starts.append(payload)
            deadline = time.monotonic() + 1.0
            while time.monotonic() < deadline:
                pass  # holds the event loop, as a handler must not and some do

        enqueued = await tasks.enqueue("job")
        await tasks.drain()
        job = await tasks.get(enqueued.id)
        assert (job.state, job.attempts, len(starts)) == ("done", 1, 1)

    run(main())


def test_renewal_ends_at_max_run():
    async def main():
        tasks = Tasks("memory:", lease=0.1, max_run=0.2, poll_interval=0.02)
        release = asyncio.Event()

        @tasks.handler("job", max_attempts=1)
        async def handler(payload):
            await release.wait()

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        while await state_of(tasks, enqueued) != "dead":
            await asyncio.sleep(0)
        assert (await tasks.get(enqueued.id)).last_error == "visibility timeout exceeded"
        release.set()
        await tasks.stop()
        assert await state_of(tasks, enqueued) == "dead"

    run(main())


def test_a_lost_lease_is_told_to_the_handler_and_its_result_is_refused(caplog):
    async def main():
        store = MemoryStore()
        tasks = Tasks(store, lease=0.3)
        told = []

        @tasks.handler("job")
        async def handler(payload, ctx):
            claims = [claim for claim, _ in await store.held([token])] if (token := token_of(store)) else []
            await store.finish([Ending(claim, Done("by another")) for claim in claims])
            await ctx.aborted
            told.append(ctx.aborted.reason)

        def token_of(store):
            return next(iter(tasks._engine().worker._running.values())).claim.token

        enqueued = await tasks.enqueue("job")
        await tasks.drain()
        assert told == ["the lease was lost"]
        assert (await tasks.get(enqueued.id)).note == "by another"

    run(main())
    assert any("late result" in record.getMessage() for record in caplog.records)


def test_a_lease_can_be_extended_by_hand_from_both_kinds_of_handler():
    async def main():
        clock = ManualClock()
        store = MemoryStore()
        tasks = Tasks(store, clock=clock, lease=60)
        leases = []

        async def note(ctx):
            leases.append(((await store.get([ctx.job.id]))[0].lease_until - clock.now()).total_seconds())

        @tasks.handler("async")
        async def handler(payload, ctx):
            assert await ctx.extend_lease(600)
            await note(ctx)

        @tasks.handler("plain")
        def plain(payload, ctx):
            assert ctx.extend_lease_sync(900)
            asyncio.run_coroutine_threadsafe(note(ctx), loop).result()

        loop = asyncio.get_running_loop()
        await tasks.enqueue("async")
        await tasks.enqueue("plain")
        await tasks.drain()
        assert leases == [600, 900]

    run(main())


def test_a_claim_whose_answer_was_lost_is_asked_after_and_run():
    class Lossy(MemoryStore):
        lose = 1

        async def claim(self, *args, **options):
            from treadle import StoreUnavailable

            claimed = await super().claim(*args, **options)
            if claimed.jobs and self.lose:
                Lossy.lose -= 1
                raise StoreUnavailable("the answer was lost")
            return claimed

    async def main():
        tasks = Tasks(Lossy())
        done = asyncio.Event()

        @tasks.handler("job", max_attempts=1)
        async def handler(payload):
            done.set()

        enqueued = await tasks.enqueue("job")
        await tasks.start()
        await asyncio.wait_for(done.wait(), 10)
        await tasks.stop()
        job = await tasks.get(enqueued.id)
        assert (job.state, job.attempts) == ("done", 1)

    logging.getLogger("treadle").setLevel(logging.ERROR)
    try:
        run(main())
    finally:
        logging.getLogger("treadle").setLevel(logging.NOTSET)


def test_results_survive_a_store_that_is_away_for_a_while():
    class Away(MemoryStore):
        left = 3

        async def finish(self, *args, **options):
            from treadle import StoreUnavailable

            if self.left:
                self.left -= 1
                raise StoreUnavailable("away")
            return await super().finish(*args, **options)

    async def main():
        tasks = Tasks(Away())
        tasks.handle("job", lambda payload: None)
        enqueued = await tasks.enqueue("job")
        await tasks.drain()
        job = await tasks.get(enqueued.id)
        assert (job.state, job.attempts) == ("done", 1)

    run(main())


def test_a_stale_token_changes_nothing():
    async def main():
        store = MemoryStore()
        tasks = Tasks(store)
        enqueued = await tasks.enqueue("job")
        assert await store.finish([Ending(Claim(enqueued.id, "made up"), Done())]) == set()
        assert await state_of(tasks, enqueued) == "pending"

    run(main())
