"""A batched loop over sqlite3 that keeps the full record: one transaction finishes the last batch and claims the next.

It is at-least-once: leases, a token checked at the finish, a lookup of the handler, a JSON decode and an asyncio task a
job, everything in one thread. No retries, no lease renewal, no wake-ups but a look at `data_version`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
import time
import uuid
from collections.abc import Mapping
from typing import Any

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads

SCHEMA = """
CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, queue TEXT NOT NULL, name TEXT NOT NULL, payload TEXT NOT NULL,
    state INTEGER NOT NULL DEFAULT 0, priority INTEGER NOT NULL DEFAULT 0, run_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
    started_at INTEGER, finished_at INTEGER, attempts INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER, last_error TEXT,
    key TEXT, worker TEXT, lease_until INTEGER, token TEXT
) STRICT;
CREATE INDEX ready ON jobs (queue, name, priority DESC, run_at, id) WHERE state = 0;
CREATE INDEX running ON jobs (lease_until) WHERE state = 1;
CREATE INDEX finished ON jobs (state, finished_at) WHERE state >= 2;
CREATE UNIQUE INDEX keys ON jobs (name, key) WHERE key IS NOT NULL;
"""
ADD = "INSERT INTO jobs (id, queue, name, payload, run_at, created_at, max_attempts) VALUES (?, 'default', 'noop', ?, ?, ?, 5)"
CLAIM = """
UPDATE jobs SET state = 1, attempts = attempts + 1, started_at = :now, worker = 'bare', token = :token, lease_until = :until
WHERE seq IN (
    SELECT seq FROM jobs WHERE state = 0 AND queue = 'default' AND name = 'noop' AND run_at <= :now
    ORDER BY priority DESC, run_at, id LIMIT :limit
)
RETURNING seq, name, payload, token
"""
FINISH = """
UPDATE jobs SET state = 2, finished_at = :now, worker = NULL, lease_until = NULL, token = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND token = :token
"""
FAIL = (
    "UPDATE jobs SET state = 3, finished_at = ?, last_error = ?, worker = NULL, lease_until = NULL, token = NULL WHERE seq = ?"
)
LOOK = 0.002
_numbers = itertools.count()


async def noop(load: Any) -> None:
    handle(load)


HANDLERS = {"noop": noop}


def _now() -> int:
    return time.time_ns() // 1000


class Bare(Subject):
    """`variant` is FULL or NORMAL."""

    note = "no library; full record kept as done; concurrency = claim size"

    def __init__(self, place: str, url: str, variant: str) -> None:
        super().__init__(place, url, variant)
        self.file = os.path.join(place, "jobs.db")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.file, isolation_level=None, timeout=30)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self.variant}")
        return connection

    async def reset(self) -> None:
        for ending in ("", "-wal", "-shm"):
            if os.path.exists(self.file + ending):
                os.unlink(self.file + ending)
        connection = self._connect()
        connection.executescript(SCHEMA)
        connection.close()

    async def open(self) -> None:
        self.connection = self._connect()

    async def close(self) -> None:
        self.connection.close()

    def _row(self, load: Any, now: int) -> tuple[Any, ...]:
        # As long as a UUID and in order of time, as treadle's ids are: ids in no order would cost the index more.
        return (f"{now:014x}-{os.getpid():010x}-{next(_numbers):010x}", json.dumps(load), now, now)

    async def one(self, kind: str, number: int) -> None:
        self.connection.execute(ADD, self._row(payload(kind, number), _now()))

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            now = _now()
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany(ADD, [self._row(load, now) for load in call])
            self.connection.execute("COMMIT")

    async def left(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM jobs WHERE state = 1").fetchone()[0])

    async def ended(self) -> Mapping[str, int]:
        counts = dict(self.connection.execute("SELECT state, count(*) FROM jobs WHERE state >= 2 GROUP BY state"))
        return {"done": counts.get(2, 0), "dead": counts.get(3, 0)}

    def durability(self) -> str:
        return ("OFF", "NORMAL", "FULL", "EXTRA")[self.connection.execute("PRAGMA synchronous").fetchone()[0]]

    def work(self, concurrency: int) -> None:
        asyncio.run(self._work(concurrency))

    async def start_here(self, concurrency: int) -> None:
        self._task = asyncio.create_task(self._work(concurrency))

    async def stop_here(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self, concurrency: int) -> None:
        connection = self._connect()
        ended: list[tuple[int, str | None]] = []
        token = ""
        while True:
            seen = connection.execute("PRAGMA data_version").fetchone()
            before = connection.total_changes
            now = _now()
            connection.execute("BEGIN IMMEDIATE")
            if ended:
                done = json.dumps([seq for seq, error in ended if error is None])
                connection.execute(FINISH, {"now": now, "seqs": done, "token": token})
                connection.executemany(FAIL, [(now, error, seq) for seq, error in ended if error is not None])
                ended = []
            token = uuid.uuid4().hex
            jobs = connection.execute(
                CLAIM, {"now": now, "token": token, "until": now + 60_000_000, "limit": concurrency}
            ).fetchall()
            connection.execute("COMMIT" if jobs or connection.total_changes > before else "ROLLBACK")
            if jobs:
                await asyncio.gather(*(self._attempt(job, ended) for job in jobs))
                continue
            while connection.execute("PRAGMA data_version").fetchone() == seen and connection.total_changes == before:
                await asyncio.sleep(LOOK)

    async def _attempt(self, job: tuple[Any, ...], ended: list[tuple[int, str | None]]) -> None:
        seq, name, text, _ = job
        try:
            await HANDLERS[name](json.loads(text))
            ended.append((seq, None))
        except Exception as error:
            ended.append((seq, f"{type(error).__name__}: {error}"))


SUBJECT = Bare
