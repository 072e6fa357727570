"""Faults of a real server at the level of the store: it dies, stays away, ends backends, is cut off, falls silent (S6, S10)."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from tests.servers.postgres import PostgresServer, own_server, shared_server
from tests.servers.proxy import proxy

from treadle.core.errors import StoreUnavailable
from treadle.core.filter import EVERYTHING
from treadle.core.job import NewJob, State
from treadle.core.outcome import Done
from treadle.core.store import Claim, Demand, Ending
from treadle.stores.postgres import PostgresStore
from treadle.testing.factory import uuid7


async def patiently(call: Callable[[], Awaitable[object]], until: float) -> object:
    """What a worker does: repeat while the store is away. The store paces its connecting, so nothing here waits."""
    while True:
        try:
            return await call()
        except StoreUnavailable:
            assert time.monotonic() < until, "the store did not come back in time"


_PAUSE = threading.Event()


class Load:
    """Callers that enqueue and workers that claim and finish, until all that was promised is done."""

    def __init__(self, store: PostgresStore, jobs: int, deadline: float = 60.0) -> None:
        self.store = store
        self.jobs = jobs
        self.until = time.monotonic() + deadline
        self.numbers = itertools.count(1)
        self.starts: Counter[str] = Counter()
        self.finished: set[str] = set()
        self.enqueued: set[str] = set()

    async def enqueue(self) -> None:
        while (number := next(self.numbers)) <= self.jobs:
            job = NewJob(uuid7(number), "load", str(number))
            await patiently(lambda job=job: self.store.enqueue([job]), self.until)  # type: ignore[misc]  # bound at once
            self.enqueued.add(job.id)

    async def work(self, worker: str) -> None:
        tokens = (f"{worker}-{number}" for number in itertools.count())
        while len(self.finished) < self.jobs:
            token = next(tokens)
            try:
                taken = list((await self.store.claim(token, [Demand(5)], worker=worker, lease=60.0)).jobs)
            except StoreUnavailable:
                held = await patiently(lambda token=token: self.store.held([token]), self.until)  # type: ignore[misc]  # bound at once
                taken = [job for _, job in held]  # type: ignore[attr-defined]  # what `held` answers
            self.starts.update(job.id for job in taken)
            if not taken:
                await asyncio.to_thread(_PAUSE.wait, 0.01)  # this worker polls, as one without wake-ups does
                assert time.monotonic() < self.until, "not all was done in time"
                continue
            endings = [Ending(Claim(job.id, token), Done()) for job in taken]
            ended = await patiently(lambda endings=endings: self.store.finish(endings), self.until)  # type: ignore[misc]  # bound at once
            # A call that was given up as StoreUnavailable may have been applied all the same; the next one then finds no claim.
            missed = [one.claim.id for one in endings if one.claim not in ended]
            stored = await patiently(lambda missed=missed: self.store.get(missed), self.until)  # type: ignore[misc]  # bound at once
            assert [job.state for job in stored] == [State.DONE] * len(missed), (
                "a finish is applied, though its answer was lost"
            )  # type: ignore[attr-defined]  # what `get` answers
            self.finished.update(job.id for job in taken)

    async def run(self, fault: Callable[[], Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(self.enqueue())
            for number in range(3):
                group.create_task(self.work(f"worker-{number}"))
            group.create_task(fault())

    async def check(self) -> None:
        stats = await self.store.stats()
        duplicates = sum(number - 1 for number in self.starts.values())
        print(f"enqueued {len(self.enqueued)}, done {stats.done}, lost {self.jobs - stats.done}, duplicate starts {duplicates}")
        assert (stats.pending, stats.running, stats.done, stats.dead) == (0, 0, self.jobs, 0)
        assert self.enqueued == self.finished
        assert duplicates == 0, "no attempt was cut short here, so none may start twice"
        assert await self.store.count(EVERYTHING) == self.jobs


@pytest.mark.slow
def test_nothing_is_lost_when_the_server_is_killed_and_restarted_mid_load() -> None:
    async def main(server: PostgresServer) -> None:
        store = PostgresStore(server.url, migrate=True)
        load = Load(store, 1500)

        async def fault() -> None:
            for share in (0.2, 0.5, 0.8):
                while len(load.finished) < share * load.jobs:
                    await asyncio.to_thread(_PAUSE.wait, 0.005)
                await asyncio.to_thread(server.kill9)
                await asyncio.to_thread(server.start)

        await load.run(fault)
        await load.check()
        await store.close()

    with own_server() as server:
        asyncio.run(main(server))


@pytest.mark.slow
def test_a_server_that_is_down_for_a_while_costs_little_and_work_goes_on_soon(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def main(server: PostgresServer) -> None:
        store = PostgresStore(server.url, migrate=True)
        load = Load(store, 600)
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        listener = await store.listen(lambda: loop.call_soon_threadsafe(woken.set))

        async def fault() -> None:
            while len(load.finished) < 100:
                await asyncio.to_thread(_PAUSE.wait, 0.005)
            await asyncio.to_thread(server.stop)
            cpu = time.process_time()
            await asyncio.to_thread(_PAUSE.wait, 5.0)  # the time that the server is away is the subject here
            cpu = time.process_time() - cpu
            assert cpu < 1.0, f"five seconds without a server cost {cpu:.2f} s of CPU"
            await asyncio.to_thread(server.start)
            back, before = time.monotonic(), len(load.finished)
            while len(load.finished) == before:
                await asyncio.to_thread(_PAUSE.wait, 0.005)
            assert time.monotonic() - back < 5.0, "work goes on within 5 s of the server's return"

        await load.run(fault)
        await load.check()
        await listener.close()
        await store.close()

    with own_server() as server:
        asyncio.run(main(server))
    lines = [record for record in caplog.records if record.name.startswith("treadle")]
    assert len(lines) <= 3, [record.getMessage() for record in lines]


@pytest.mark.slow
def test_terminated_backends_are_replaced_listener_included_five_times() -> None:
    server = shared_server()

    async def main(database: str) -> None:
        idle, busy = (PostgresStore(server.url_of(database), migrate=True) for _ in range(2))
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        await busy.stats()
        listener = await idle.listen(lambda: loop.call_soon_threadsafe(woken.set))
        keeper = idle.lease_keeper()
        numbers = itertools.count(1)

        def connections() -> int:
            with server.connect() as own:
                row = own.execute(
                    "select count(*) from pg_stat_activity where datname = %s and backend_type = 'client backend'", [database]
                ).fetchone()
            assert row is not None
            return int(row[0])

        async def picked_up() -> float:
            """Seconds from an enqueue by another store until the idle one is woken and has claimed."""
            started = time.monotonic()
            woken.clear()
            await patiently(lambda: busy.enqueue([NewJob(uuid7(next(numbers)), "job")]), started + 10)
            async with asyncio.timeout(10):
                await woken.wait()
            token = f"t{next(numbers)}"
            claimed = await idle.claim(token, [Demand(1)], worker="w", lease=60.0)
            taken = time.monotonic() - started
            assert len(claimed.jobs) == 1
            claim = Claim(claimed.jobs[0].id, token)
            assert await asyncio.to_thread(keeper.renew, [claim], 60.0) == {claim}
            assert await idle.finish([Ending(claim, Done())]) == {claim}
            return taken

        before = min([await picked_up() for _ in range(5)])
        counts = [await asyncio.to_thread(connections)]
        times = []
        for _ in range(5):
            with server.connect() as own:
                own.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = %s and backend_type = 'client backend'",
                    [database],
                )
            await asyncio.to_thread(_PAUSE.wait, 0.5)  # the listener is back in a fraction of this
            times.append(await picked_up())
            counts.append(await asyncio.to_thread(connections))
        print(f"pickup before {before * 1000:.1f} ms, after each round {[round(one * 1000, 1) for one in times]} ms; {counts}")
        assert max(times) < 1.0, times
        assert max(counts) <= counts[0] + 1, f"connections grow: {counts}"
        keeper.close()
        await listener.close()
        await idle.close()
        await busy.close()

    database = server.fresh_database()
    try:
        asyncio.run(main(database))
    finally:
        server.drop_database(database)


def test_cut_connections_are_replaced_and_a_cut_claim_is_found_again() -> None:
    server = shared_server()

    async def main(port: int, database: str, cut: Callable[[], None]) -> None:
        store = PostgresStore(server.url_of(database, port), migrate=True)
        load = Load(store, 400)

        async def fault() -> None:
            for number in range(10):
                while len(load.finished) < number * 35 + 20:
                    await asyncio.to_thread(_PAUSE.wait, 0.002)
                cut()

        await load.run(fault)
        await load.check()
        await store.close()

    database = server.fresh_database()
    try:
        with proxy(server.port) as between:
            asyncio.run(main(between.port, database, between.cut))
    finally:
        server.drop_database(database)
