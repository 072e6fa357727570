"""A batched loop over asyncpg that keeps the full record: claims on one connection while finishes are written on another.

It is at-least-once: leases, a token checked at the finish, a lookup of the handler, a JSON decode and an asyncio task a
job. No retries, no lease renewal.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping
from typing import Any

import asyncpg

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads

SCHEMA = """
CREATE TABLE jobs (
    id uuid PRIMARY KEY, queue text NOT NULL DEFAULT 'default', name text NOT NULL, payload text NOT NULL,
    state smallint NOT NULL DEFAULT 0, priority smallint NOT NULL DEFAULT 0, run_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(), started_at timestamptz, finished_at timestamptz,
    attempts smallint NOT NULL DEFAULT 0, max_attempts smallint NOT NULL DEFAULT 5, last_error text, key text, worker text,
    lease_until timestamptz, token text
);
CREATE INDEX ready ON jobs (queue, name, priority DESC, run_at, id) WHERE state = 0;
CREATE INDEX running ON jobs (lease_until) WHERE state = 1;
CREATE INDEX finished ON jobs (state, finished_at) WHERE state >= 2;
CREATE UNIQUE INDEX keys ON jobs (name, key) WHERE key IS NOT NULL;
"""
ADD = """
WITH added AS (INSERT INTO jobs (id, name, payload) SELECT i, 'noop', p FROM unnest($1::uuid[], $2::text[]) AS new (i, p))
SELECT pg_notify('jobs', '')
"""
CLAIM = """
UPDATE jobs SET state = 1, attempts = attempts + 1, started_at = now(), worker = 'bare', token = $2,
    lease_until = now() + interval '60 s'
WHERE id = ANY (ARRAY(
    SELECT id FROM jobs WHERE state = 0 AND queue = 'default' AND name = 'noop' AND run_at <= now()
    ORDER BY priority DESC, run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
))
RETURNING id, name, payload
"""
FINISH = """
UPDATE jobs SET state = 2, finished_at = now(), worker = NULL, lease_until = NULL, token = NULL
WHERE id = ANY ($1::uuid[]) AND state = 1 AND token = $2
"""
FAIL = """
UPDATE jobs SET state = 3, finished_at = now(), last_error = e, worker = NULL, lease_until = NULL, token = NULL
FROM unnest($1::uuid[], $2::text[]) AS f (i, e) WHERE id = i
"""


async def noop(load: Any) -> None:
    handle(load)


HANDLERS = {"noop": noop}


class Bare(Subject):
    note = "no library; full record kept as done; concurrency = claim size"
    packages = ("asyncpg",)

    async def reset(self) -> None:
        connection = await asyncpg.connect(self.url)
        await connection.execute(SCHEMA)
        await connection.close()

    async def open(self) -> None:
        self.connection = await asyncpg.connect(self.url)

    async def close(self) -> None:
        await self.connection.close()

    async def _add(self, loads: list[Any]) -> None:
        await self.connection.execute(ADD, [uuid.uuid4() for _ in loads], [json.dumps(load) for load in loads])

    async def one(self, kind: str, number: int) -> None:
        await self._add([payload(kind, number)])

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            await self._add(call)

    async def left(self) -> int:
        return int(await self.connection.fetchval("SELECT count(*) FROM jobs WHERE state = 1"))

    async def ended(self) -> Mapping[str, int]:
        counts = dict(await self.connection.fetch("SELECT state, count(*) FROM jobs WHERE state >= 2 GROUP BY 1"))
        return {"done": counts.get(2, 0), "dead": counts.get(3, 0)}

    def work(self, concurrency: int) -> None:
        asyncio.run(self._work(concurrency))

    async def start_here(self, concurrency: int) -> None:
        self._task = asyncio.create_task(self._work(concurrency))

    async def stop_here(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self, concurrency: int) -> None:
        claims, finishes, listener = [await asyncpg.connect(self.url) for _ in range(3)]
        arrived = asyncio.Event()
        await listener.add_listener("jobs", lambda *_: arrived.set())
        writing: asyncio.Task[None] | None = None
        while True:
            arrived.clear()
            token = uuid.uuid4().hex
            jobs = await claims.fetch(CLAIM, concurrency, token)
            if writing is not None:
                await writing
                writing = None
            if not jobs:
                await arrived.wait()
                continue
            ended: list[tuple[Any, str | None]] = []
            await asyncio.gather(*(_attempt(*job, ended) for job in jobs))
            writing = asyncio.create_task(_finish(finishes, ended, token))
            if len(jobs) < concurrency:
                await writing
                writing = None


async def _attempt(ident: Any, name: str, text: str, ended: list[tuple[Any, str | None]]) -> None:
    try:
        await HANDLERS[name](json.loads(text))
        ended.append((ident, None))
    except Exception as error:
        ended.append((ident, f"{type(error).__name__}: {error}"))


async def _finish(connection: Any, ended: list[tuple[Any, str | None]], token: str) -> None:
    await connection.execute(FINISH, [ident for ident, error in ended if error is None], token)
    failed = [(ident, error) for ident, error in ended if error is not None]
    if failed:
        await connection.execute(FAIL, *map(list, zip(*failed, strict=True)))


SUBJECT = Bare
