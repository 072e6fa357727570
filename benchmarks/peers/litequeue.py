"""litequeue: a queue over SQLite without a worker. Its worker is the loop of its documentation: pop, handle, done."""

from __future__ import annotations

import inspect
import json
import os
import sqlite3
import threading
import time
from collections.abc import Mapping

from litequeue import LiteQueue

from benchmarks.load import handle, payload
from benchmarks.subject import Subject


class LiteQueueSubject(Subject):
    note = "pop and done, a message at a time; finished messages kept; idle poll 1 ms"
    packages = ("litequeue",)
    threads = True

    def __init__(self, place: str, url: str, variant: str) -> None:
        super().__init__(place, url, variant)
        self.file = os.path.join(place, "queue.db")
        self._own = threading.local()

    @property
    def queue(self) -> LiteQueue:
        """The queue of this thread: one cannot be shared."""
        if not hasattr(self._own, "queue"):
            self._own.queue = LiteQueue(self.file)
        queue: LiteQueue = self._own.queue
        return queue

    async def reset(self) -> None:
        for ending in ("", "-wal", "-shm"):
            if os.path.exists(self.file + ending):
                os.unlink(self.file + ending)

    def one_blocking(self, kind: str, number: int) -> None:
        self.queue.put(json.dumps(payload(kind, number)))

    async def left(self) -> int:
        # Its own count leaves the popped ones out.
        [count] = self.queue.conn.execute(f"SELECT count(*) FROM {self.queue.table} WHERE status < 2").fetchone()
        return int(count)

    async def ended(self) -> Mapping[str, int]:
        counts = dict(map(tuple, self.queue.conn.execute(f"SELECT status, count(*) FROM {self.queue.table} GROUP BY status")))
        return {"done": counts.get(2, 0), "dead": counts.get(3, 0)}

    def durability(self) -> str:
        return ("OFF", "NORMAL", "FULL")[self.queue.conn.execute("PRAGMA synchronous").fetchone()[0]]

    def work(self, concurrency: int) -> None:
        queue = self.queue
        claims = "claim_id" in inspect.signature(queue.done).parameters  # newer ones check who is done
        while True:
            try:
                message = queue.pop()
            except sqlite3.OperationalError:
                continue  # another worker had the lock for too long
            if message is None:
                time.sleep(0.001)
                continue
            hold = {"claim_id": message.claim_id} if claims else {}
            try:
                handle(json.loads(message.data))
            except Exception:
                queue.mark_failed(message.message_id, **hold)
            else:
                queue.done(message.message_id, **hold)


SUBJECT = LiteQueueSubject
