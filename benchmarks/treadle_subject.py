"""treadle as a subject, over any store: everything through `Tasks` and the `treadle` command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.load import payload
from benchmarks.subject import Subject, payloads
from treadle.core.clock import to_micros
from treadle.core.cron import Cron
from treadle.core.filter import JobFilter
from treadle.core.job import NewJob, State
from treadle.core.schedule import Schedule

_RUNNING = JobFilter(states=frozenset({State.RUNNING}))
_DONE = JobFilter(states=frozenset({State.DONE}))
_CALL = 1000  # jobs a bulk call, as the peers get them
_AT_ONCE = 100  # callers that store schedules


class Treadle(Subject):
    """`variant` is what follows the store's name in the URL, such as `?synchronous=NORMAL`."""

    note = "full record kept as done; concurrency = running limit"

    def __init__(self, place: str, url: str, variant: str) -> None:
        super().__init__(place, url, variant)
        self.file = os.path.join(place, "jobs.db")
        self.url = url or ("memory:" if variant == "memory" else f"sqlite:{self.file}{variant}")
        os.environ["TREADLE_STORE"] = self.url
        from benchmarks.treadle_app import tasks

        self.tasks = tasks
        self._options: dict[str, Any] = {}

    async def reset(self) -> None:
        if self.url.startswith("sqlite:"):
            for ending in ("", "-wal", "-shm", "-lock"):
                if os.path.exists(self.file + ending):
                    os.unlink(self.file + ending)
        await self.tasks.store.migrate()

    async def close(self) -> None:
        await self.tasks.close()

    async def one(self, kind: str, number: int) -> None:
        if kind == "failing":
            await self.tasks.enqueue("noop", payload(kind, number), max_attempts=1)
        else:
            await self.tasks.enqueue("noop", payload(kind, number))

    async def bulk(self, kind: str, numbers: range) -> None:
        options = {"max_attempts": 1} if kind == "failing" else {}
        for call in payloads(kind, numbers, _CALL):
            await self.tasks.enqueue_many([{"name": "noop", "payload": load, **options} for load in call])

    async def left(self) -> int:
        # Asked only when every job has been claimed, so what is not finished is running.
        return await self.tasks.store.count(_RUNNING)

    async def ended(self) -> Mapping[str, int]:
        names = frozenset({"noop"})
        return {
            state.value: await self.tasks.store.count(JobFilter(states=frozenset({state}), names=names))
            for state in (State.DONE, State.DEAD)
        }

    def work(self, concurrency: int) -> None:
        from treadle.cli.main import main

        raise SystemExit(
            main(["work", "benchmarks.treadle_app:tasks", "--concurrency", str(concurrency), "--log-level", "warning"])
        )

    async def start_here(self, concurrency: int) -> None:
        self.tasks.configure(concurrency=concurrency)
        await self.tasks.start()

    async def stop_here(self) -> None:
        await self.tasks.stop()

    def durability(self) -> str:
        if not self.url.startswith("sqlite:"):
            return ""
        return "NORMAL" if "NORMAL" in self.url else "FULL"

    async def schedule(self, numbers: range, first: int, apart: int) -> None:
        now = datetime.now(UTC)
        for start in range(0, len(numbers), _AT_ONCE):
            puts = []
            for number in numbers[start : start + _AT_ONCE]:
                at = datetime.fromtimestamp(first, UTC) + timedelta(seconds=apart * number)
                # A second minute, since schedules seldom share one expression: what is parsed is not parsed only once.
                cron = Cron.with_seconds(f"{at.second} {at.minute},{(at.minute + 5 + number % 50) % 60} {at.hour} * * *")
                schedule = Schedule.of(f"schedule-{number}", cron, NewJob("", "noop", str(number)))
                puts.append(self.tasks.store.put_schedule(replace(schedule, next_at=cron.next(now))))
            await asyncio.gather(*puts)

    async def due(self) -> bool:
        return (await self.tasks.store.due_schedules(0)).next_in == 0.0

    async def enqueued(self) -> Mapping[int, int]:
        jobs = await self.tasks.store.find(_DONE, limit=1000)
        return {int(job.payload_json): to_micros(job.created_at) * 1000 for job in jobs}

    async def listed(self) -> None:
        for state in State:
            await self.tasks.list(states=[state], limit=100)

    async def counted(self) -> None:
        await self.tasks.stats()

    async def pile(self, kind: str, jobs: int) -> None:
        entry: dict[str, Any]
        match kind:
            case "finished":
                entry = {"name": "pile"}
            case "unknown":
                entry = {"name": "handled nowhere", "priority": 10}
            case _:
                entry = {"name": "noop", "priority": 10, "delay": 30 * 24 * 3600.0}
        for _ in range(0, jobs, _CALL):
            await self.tasks.enqueue_many([entry] * _CALL)
        if kind == "finished":
            self.tasks.configure(concurrency=500)
            await self.tasks.start()
            while await self.tasks.store.count(JobFilter(states=frozenset({State.DONE}))) < jobs:
                await asyncio.sleep(1.0)
            await self.tasks.stop()


SUBJECT = Treadle
