"""What a job's call does where the store or the service itself cannot do their part: it costs the job nothing (F5)."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.functions.function_stores import Place, in_memory, run
from tests.functions.live import Live, live
from tests.functions.shortages import no_more_files

from treadle.core.errors import StoreFull, StoreUnavailable
from treadle.functions import calls
from treadle.functions.directory import NAMESPACE
from treadle.testing import FaultyStore

AWAY = 'connection to server at "db.internal", port 5432 failed'


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Jobs that are put off keep their slots for a moment only."""
    monkeypatch.setattr(calls, "AGAIN", 0.02)
    yield


class LookUps:
    """A store whose look-ups of functions fail, and nothing else; `failed` counts them."""

    def __init__(self, place: Place) -> None:
        self.store = FaultyStore(place.store())
        self.error: Exception | None = None
        self.silent = False
        self.failed = 0
        self._real = self.store.get_document
        self.store.get_document = self._get

    async def _get(self, namespace: str, key: str, **options: Any) -> Any:
        if namespace == NAMESPACE and (self.error is not None or self.silent):
            self.failed += 1
            if self.error is None:
                await asyncio.Event().wait()
            else:
                raise self.error
        return await self._real(namespace, key, **options)

    async def until_failed(self, times: int, service: Live, id: str) -> None:
        """Wait for so many failures, while time passes for the pauses that the job makes."""
        async with asyncio.timeout(20):
            while self.failed < times:
                if (await service.job(id))["status"] == "pending":
                    await service.pass_time(1.0)


@asynccontextmanager
async def put_off(place: Place, **options: Any) -> AsyncIterator[tuple[Live, LookUps]]:
    looks = LookUps(place)
    async with live(place, store=looks.store, **options) as service:
        yield service, looks


def told(caplog: pytest.LogCaptureFixture, beginning: str) -> list[str]:
    return [text for text in caplog.messages if text.startswith(beginning)]


async def comes_to_its_end(service: Live, id: str) -> Any:
    """The job once it is over, while time passes."""
    async with asyncio.timeout(20):
        while (job := await service.job(id))["status"] not in ("completed", "dead"):
            if job["status"] == "pending":
                await service.pass_time(1.0)
    return job


def test_a_store_that_is_away_at_the_look_up_costs_no_attempt(caplog: pytest.LogCaptureFixture) -> None:
    async def test(place: Place) -> None:
        async with put_off(place) as (service, looks):
            function = await service.function("x")
            looks.error = StoreUnavailable(AWAY)
            jobs = [await service.enqueue(name, max_attempts=1) for name in ("x", "x", "ghost")]
            await looks.until_failed(8, service, jobs[0]["id"])
            for job in jobs:
                now = await service.job(job["id"])
                assert now["status"] in ("pending", "running") and now["error"] is None, now
            looks.error = None
            ended = [await comes_to_its_end(service, job["id"]) for job in jobs]
            assert [(job["status"], job["attempts"]) for job in ended] == [("completed", 1)] * 2 + [("dead", 1)]
            assert ended[2]["error"] == "Function 'ghost' not found"
            assert len(function.calls) == 2
            assert "db.internal" not in repr(ended)

    run("memory", test)
    assert told(caplog, "jobs are put off") == [
        f"jobs are put off, since the store does not say where their functions are: {AWAY}"
    ]
    assert told(caplog, "the functions: the store failed") == [f"the functions: the store failed, trying again: {AWAY}"]
    assert not [
        record
        for record in caplog.records
        if record.exc_info or (record.levelno >= logging.ERROR and "ghost" not in record.getMessage())
    ]


def test_a_store_that_cannot_write_at_the_first_call_of_all_costs_no_attempt() -> None:
    async def test(place: Place) -> None:
        store = FaultyStore(place.store())
        refused = asyncio.Event()

        async def put(namespace: str, *values: Any, **options: Any) -> Any:
            if namespace == NAMESPACE:
                refused.set()
                raise StoreFull("no room")
            return await real(namespace, *values, **options)

        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "own").mkdir()
            (Path(folder) / "own/main.py").write_text("async def handle(request): return 'ok'")
            async with live(place, store=store, folder=Path(folder)) as service:
                real, store.put_document = store.put_document, put
                job = await service.enqueue("own", max_attempts=1)
                async with asyncio.timeout(20):
                    await refused.wait()
                    assert (await service.job(job["id"]))["error"] is None
                store.put_document = real
                ended = await comes_to_its_end(service, job["id"])
                assert (ended["status"], ended["attempts"], ended["response_status"]) == ("completed", 1, 200)

    run("memory", test)


def test_a_store_that_is_silent_at_the_look_up_costs_no_attempt() -> None:
    async def test(place: Place) -> None:
        async with put_off(place, environment={"JOB_TIMEOUT_SECS": "1"}) as (service, looks):
            function = await service.function("x")
            looks.silent = True
            job = await service.enqueue("x", max_attempts=1)
            async with asyncio.timeout(20):
                while "put off" not in "".join(messages):
                    await logged.wait()
                    logged.clear()
            assert (await service.job(job["id"]))["error"] is None
            looks.silent = False
            service.service.catalogue._directory._readings.clear()  # a read that is never answered would be waited for
            assert (await comes_to_its_end(service, job["id"]))["status"] == "completed"
            assert len(function.calls) == 1

    messages: list[str] = []
    logged = asyncio.Event()

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())
            logged.set()

    handler = Told()
    logging.getLogger("treadle").addHandler(handler)
    try:
        run("memory", test)
    finally:
        logging.getLogger("treadle").removeHandler(handler)
    assert "where their functions are: the store did not answer within 1 s" in "".join(messages)


def test_jobs_that_are_put_off_are_not_claimed_as_fast_as_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each keeps its slot for a while, so that a long queue is not claimed and given back from end to end, again and again."""

    async def test(place: Place) -> None:
        async with put_off(place, concurrency=2) as (service, looks):
            looks.error = StoreUnavailable(AWAY)
            jobs = [await service.enqueue("x") for _ in range(10)]
            await looks.until_failed(1, service, jobs[0]["id"])
            async with asyncio.timeout(20):
                while len(await service.ask("GET", "/v1/functions/jobs?status=running")) < 2:
                    pass
            claims = looks.store.calls["claim"]
            for _ in range(100):
                await service.job(jobs[0]["id"])
            assert looks.store.calls["finish"] == 0
            assert looks.store.calls["claim"] <= claims + 1

    monkeypatch.setattr(calls, "AGAIN", 5.0)
    run("memory", test)


def test_no_file_for_the_call_costs_no_attempt(caplog: pytest.LogCaptureFixture) -> None:
    async def test(place: Place) -> None:
        async with live(place) as service:
            function = await service.function("x")
            await service.service.catalogue.find("x")
            job = await service.enqueue("x", max_attempts=1)
            await comes_to_its_end(service, job["id"])
            await service.service._caller.close()  # no connection is kept
            with no_more_files():
                jobs = [await service.enqueue("x", max_attempts=1) for _ in range(3)]
                async with asyncio.timeout(20):
                    while not told(caplog, "jobs are put off"):
                        await service.pass_time(0.5)
                        await service.job(job["id"])
                for _ in range(20):
                    await service.pass_time(0.5)
                    now = [await service.job(one["id"]) for one in jobs]
                    assert all(one["status"] in ("pending", "running") and one["error"] is None for one in now), now
            for one in jobs:
                ended = await comes_to_its_end(service, one["id"])
                assert (ended["status"], ended["attempts"]) == ("completed", 1)
            assert len(function.calls) == 4
            page = await service.http.get("/metrics", headers={"apikey": service.keys["service_role"]})
            assert 'treadle_function_calls_total{kind="job",name="function:x",status="2xx"} 4.0' in page.text
            assert 'status="none"' not in page.text

    run("memory", test)
    assert told(caplog, "jobs are put off") == [
        "jobs are put off, since their functions cannot be called: this process has too many open files"
    ]


def test_no_file_for_the_process_of_a_function_costs_no_attempt(caplog: pytest.LogCaptureFixture) -> None:
    async def test(place: Place) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "own").mkdir()
            (Path(folder) / "own/main.py").write_text("async def handle(request): return 'ok'")
            async with live(place, folder=Path(folder)) as service:
                await service.service.catalogue.find("own")
                await service.job((await service.enqueue("ghost", delay_secs=3600))["id"])
                with no_more_files():
                    job = await service.enqueue("own", max_attempts=1)
                    async with asyncio.timeout(20):
                        while not told(caplog, "jobs are put off"):
                            await service.pass_time(0.5)
                            await service.job(job["id"])
                    now = await service.job(job["id"])
                    assert now["status"] in ("pending", "running") and now["error"] is None
                ended = await comes_to_its_end(service, job["id"])
                assert (ended["status"], ended["attempts"], ended["response_status"]) == ("completed", 1, 200)

    run("memory", test)


@in_memory
async def test_what_the_store_has_as_a_function_and_is_none_fails_the_job(place: Place) -> None:
    async with live(place) as service:
        for name, value in {
            "b": {"secret": "s\0", "active": True, "url": "http://127.0.0.1:9"},
            "c": ["nothing"],
            "d": {"secret": "s", "active": True, "url": "http://127.0.0.1:9", "concurrency": 10**50},
        }.items():
            await place.store().put_document(NAMESPACE, name, value, now=place.time.now())
            job = await service.enqueue(name, max_attempts=1)
            error = (await service.until(job["id"], "dead"))["error"]
            assert error.startswith(f"Function '{name}' cannot be called: what the store has as function '{name}' is "), error
