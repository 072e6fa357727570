"""huey, over SQLite or Redis. A dequeued job is deleted before it runs, so a crash loses it (at most once)."""

from __future__ import annotations

import os
from typing import Any

from huey import RedisHuey, SqliteHuey
from huey.api import Huey

from benchmarks.load import handle, payload
from benchmarks.subject import Subject


class HueySubject(Subject):
    """`variant` is `sqlite` or `redis`."""

    note = "results off; concurrency = worker threads; a job is gone when it is taken, a crash loses it; idle poll 10 to 50 ms"
    packages = ("huey",)
    threads = True

    def __init__(self, place: str, url: str, variant: str) -> None:
        super().__init__(place, url, variant)
        self.huey: Huey
        if variant == "sqlite":
            self.huey = SqliteHuey("bench", filename=os.path.join(place, "huey.db"), results=False)
        else:
            self.huey = RedisHuey("bench", url=url, results=False, blocking=True)

        @self.huey.task(name="noop")
        def noop(load: Any) -> None:
            handle(load)

        self.noop = noop

    async def reset(self) -> None:
        if self.variant == "sqlite":
            self.huey.storage.close()
            for ending in ("", "-wal", "-shm"):
                if os.path.exists(self.huey.storage.filename + ending):
                    os.unlink(self.huey.storage.filename + ending)
            self.huey.storage.initialize_schema()
        else:
            self.huey.storage.flush_all()

    def one_blocking(self, kind: str, number: int) -> None:
        self.noop(payload(kind, number))

    async def left(self) -> int:
        return int(self.huey.pending_count())

    def durability(self) -> str:
        if self.variant != "sqlite":
            return ""
        return ("OFF", "NORMAL", "FULL")[self.huey.storage.conn.execute("PRAGMA synchronous").fetchone()[0]]

    def work(self, concurrency: int) -> None:
        self.huey.create_consumer(
            workers=concurrency,
            worker_type="thread",
            initial_delay=0.01,
            backoff=1.15,
            max_delay=0.05,
            periodic=False,
            check_worker_health=False,
        ).run()


SUBJECT = HueySubject
