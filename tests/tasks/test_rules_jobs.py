"""Jobs at the limits of what may be stored, on every store, and the library's surface (E1, E4 to E9, E18, E25)."""

import asyncio
import inspect
import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.servers import postgres, valkey

from treadle import Conflict, NotFound, Tasks
from treadle.engine.gatherer import Gatherer
from treadle.stores.memory import MemoryStore

pytestmark = pytest.mark.timeout(60)


def run(main):
    return asyncio.run(asyncio.wait_for(main, 50))


@pytest.fixture(params=["memory", "sqlite", "postgres", "valkey"])
def tasks(request, tmp_path):
    match request.param:
        case "memory":
            url = "memory:"
        case "sqlite":
            url = f"sqlite:{tmp_path}/jobs.db"
        case "postgres":
            server = postgres.shared_server()
            url = server.url_of(server.fresh_database())
        case "valkey":
            server = valkey.shared()
            url = f"{server.url}?prefix={server.fresh_prefix()}"
    return Tasks(url, migrate=True, worker_id="🧵" * 200)


# -- the limits (E1, E5, E8)


def test_the_longest_names_queues_and_keys_are_stored_found_and_held(tasks):
    name, queue, key = "𝒜" * 128, "😀" * 128, "🧵" * 255

    async def main():
        seen = []
        tasks.handle(name, seen.append, queue=queue)
        tasks.every(name, 60, "interval")
        first = await tasks.enqueue(name, "first", idempotency_key=key)
        again = await tasks.enqueue(name, "again", idempotency_key=key)
        other = await tasks.enqueue(name, "other", dedupe_key=key)
        twin = await tasks.enqueue(name, "twin", dedupe_key=key)
        assert (first.created, again.created, other.created, twin.created) == (True, False, True, False)
        assert (again.id, twin.id) == (first.id, other.id)
        assert await tasks.drain() == 3
        assert sorted(seen) == ["first", "interval", "other"]
        job = await tasks.get(first.id)
        assert (job.name, job.queue, job.idempotency_key, job.state) == (name, queue, key, "done")
        assert len(await tasks.list(name=name, queue=queue)) == 4
        assert (await tasks.enqueue(name, "free again", dedupe_key=key)).created
        await tasks.close()

    run(main())


ODD = [
    "a:b",
    "a\nb",
    "a\tb",
    "a\x7fb",
    "a\u2028b",
    "{a}",
    "a*b",
    "a?b",
    "[a]",
    "a\\b",
    "%s",
    "a%b",
    "a_b",
    "'; drop table jobs; --",
]


def test_odd_names_and_keys_are_told_apart(tasks):
    async def main():
        for text in ODD:
            assert (await tasks.enqueue(text, text, idempotency_key=text)).created
        for text in ODD:
            assert not (await tasks.enqueue(text, "again", idempotency_key=text)).created
            assert [job.payload for job in await tasks.list(name=text)] == [text]
        pairs = [("a", "b:c"), ("a:b", "c"), ("a", "bc"), ("ab", "c"), ("A", "bc"), ("a", "BC")]  # never run together (E8)
        for kind in ("idempotency_key", "dedupe_key"):
            assert [(await tasks.enqueue(name, **{kind: key})).created for name, key in pairs] == [True] * len(pairs)
        await tasks.close()

    run(main())


@pytest.mark.parametrize("odd", ["", "x" * 10_000, "a\0b", "unknown", "00000000-0000-7000-8000-000000000000"])
def test_what_can_be_no_id_or_name_is_found_nowhere_and_breaks_nothing(tasks, odd):
    async def main():
        enqueued = await tasks.enqueue("job")
        assert await tasks.get(odd) is None
        for call in (tasks.delete, tasks.retry, tasks.run_now):
            with pytest.raises(NotFound):
                await call(odd)
        assert await tasks.list(name=odd) == await tasks.list(queue=odd) == []
        assert (await tasks.prune(0, states=["pending"], name=odd)).deleted == 0
        assert list((await tasks.retry(all_dead=True, name=odd)).revived) == []
        with pytest.raises(Conflict, match="is pending; only dead jobs"):
            await tasks.retry(enqueued.id)
        await tasks.close()

    run(main())


PAYLOADS = [
    10**4000,
    2**64 + 1,
    -1e-300,
    1.7976931348623157e308,
    -0.0,
    "\0\uffff😀",
    [[]] * 1000,
    {"": 1, "\0": 2, "a": 3, "A": 4},
]


def test_payloads_at_the_edges_come_back_exactly(tasks):
    async def main():
        largest = "ä" * ((1_048_576 - 2) // 2)
        for payload in [*PAYLOADS, largest]:
            enqueued = await tasks.enqueue("job", payload)
            assert json.dumps((await tasks.get(enqueued.id)).payload) == json.dumps(payload)
        await tasks.close()

    run(main())


def test_thousands_at_once_each_with_its_own_answer(tasks):
    async def main():
        answers = await tasks.enqueue_many(
            {"name": "job", "payload": number, "idempotency_key": f"key-{number % 1000}"} for number in range(3000)
        )
        assert [one.created for one in answers] == [True] * 1000 + [False] * 2000
        assert [one.job.payload for one in answers] == [number % 1000 for number in range(3000)]
        together = await asyncio.gather(*(tasks.enqueue("other", number, dedupe_key="one") for number in range(200)))
        assert sum(one.created for one in together) == 1
        assert len({one.id for one in together}) == 1
        await tasks.close()

    run(main())


# -- callers that go away


def test_a_caller_that_is_cancelled_before_any_write_of_it_began_stores_nothing():
    async def main():
        gate, written = asyncio.Event(), []

        async def write(items):
            written.append(items)
            await gate.wait()
            return items

        gatherer = Gatherer(write, lambda item: 1, limit=10, load=100)
        calls = [asyncio.create_task(gatherer.add(0))]
        while not written:
            await asyncio.sleep(0)
        calls += [asyncio.create_task(gatherer.add(item)) for item in (1, 2, 3)]
        await asyncio.sleep(0)
        calls[2].cancel()
        gate.set()
        await asyncio.gather(*calls, return_exceptions=True)
        assert written == [[0], [1, 3]]

    run(main())


def test_cancelled_enqueues_harm_no_others():
    async def main():
        tasks = Tasks("memory:")
        calls = [asyncio.create_task(tasks.enqueue("job", number)) for number in range(20)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert all(answer.created for answer in answers[1::2])
        assert {job.payload for job in await tasks.list()} >= set(range(1, 20, 2))

    run(main())


# -- an application's life (E25)


def test_an_application_that_is_given_the_tasks_twice_starts_and_stops_them_once():
    from starlette.applications import Starlette

    started, stopped = [], []

    class Told(MemoryStore):
        async def listen(self, wake):
            started.append(wake)
            return await super().listen(wake)

        async def close(self):
            stopped.append(True)
            await super().close()

    async def main():
        tasks = Tasks(Told())
        done = asyncio.Event()

        @tasks.handler("job")
        async def job(payload):
            done.set()

        app = Starlette()
        tasks.install(app)
        tasks.install(app)
        async with app.router.lifespan_context(app):
            await tasks.enqueue("job")
            await done.wait()
        assert len(started) == 1
        assert stopped
        assert (await tasks.stats()).done == 1
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("treadle")] == []

    run(main())


def test_with_nothing_to_do_nothing_is_done(tasks):
    async def main():
        assert await tasks.run_once() == await tasks.drain() == 0
        tasks.handle("job", lambda payload: None)
        assert await tasks.run_once() == await tasks.drain() == 0
        assert await tasks.enqueue_many([]) == await tasks.list() == []
        stats = await tasks.stats()
        assert (stats.pending, stats.running, stats.done, stats.dead, stats.next_run_at) == (0, 0, 0, 0, None)
        assert list((await tasks.retry(all_dead=True)).revived) == []
        await tasks.close()

    run(main())


def test_a_hundred_thousand_slots_run_what_there_is():
    async def main():
        tasks = Tasks("memory:", concurrency=100_000)
        together = 0
        all_there = asyncio.Event()

        @tasks.handler("job")
        async def job(payload):
            nonlocal together
            together += 1
            if together == 5000:
                all_there.set()
            await all_there.wait()

        await tasks.enqueue_many([{"name": "job"}] * 5000)
        assert await tasks.drain() == 5000

    run(main())


# -- the surface (C12 to C22)

METHODS = [
    "handler", "handle", "enqueue", "enqueue_many", "every", "cron", "install", "start", "stop", "run_once", "drain", "get",
    "list", "retry", "delete", "prune", "stats", "pending_names",
]  # fmt: skip
TWINS = [name for name in METHODS if name not in ("handler", "handle", "every", "cron", "install")]


def test_the_surface_is_what_it_is_said_to_be():
    tasks = Tasks("memory:")
    assert [name for name in METHODS if not callable(getattr(tasks, name, None))] == []
    assert [name for name in TWINS if not callable(getattr(tasks.sync, name, None))] == []
    assert list(inspect.signature(tasks.list).parameters) == ["states", "name", "queue", "limit"]
    options = ["delay", "run_at", "idempotency_key", "dedupe_key", "max_attempts", "priority", "queue", "connection"]
    assert list(inspect.signature(tasks.enqueue).parameters) == ["name", "payload", *options]


def test_the_defaults_of_a_worker_are_those_of_the_rule():
    given = {name: parameter.default for name, parameter in inspect.signature(Tasks).parameters.items()}
    retry = given["retry"]
    assert (retry.base, retry.cap, retry.jitter) == (1, 900, 0)
    expected = {
        "concurrency": 1, "queues": None, "poll_interval": 1.0, "lease": 60.0, "warn_after": 30.0, "timeout": None,
        "max_run": 86_400.0, "autostart": True, "max_attempts": 5, "retention": None, "key_retention": None,
        "max_payload": 1_048_576, "clock": None, "worker_id": None, "logger": None,
    }  # fmt: skip
    assert {name: given[name] for name in expected} == expected


def test_an_enqueue_answers_the_job_as_stored_with_what_was_said_of_it(tasks):
    async def main():
        at = datetime(2030, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
        enqueued = await tasks.enqueue("job", {"a": 1}, run_at=at, max_attempts=7, priority=-3, queue="mails", dedupe_key="k")
        job = enqueued.job
        assert (enqueued.id, enqueued.created) == (job.id, True)
        assert job == await tasks.get(enqueued.id)
        assert (job.name, job.payload, job.run_at, job.max_attempts, job.priority, job.queue, job.dedupe_key) == (
            "job", {"a": 1}, at, 7, -3, "mails", "k",
        )  # fmt: skip
        assert (job.state, job.attempts, job.interruptions, job.started_at, job.finished_at, job.worker) == (
            "pending", 0, 0, None, None, None,
        )  # fmt: skip
        soon = await tasks.enqueue("job", delay=timedelta(hours=1))
        assert soon.job.run_at - soon.job.created_at == timedelta(hours=1)
        assert (await tasks.enqueue("job")).job.max_attempts is None  # fixed at the first claim (E4)
        await tasks.close()

    run(main())
