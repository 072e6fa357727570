"""persist-queue: a queue over SQLite with acknowledgements and without a worker. Its worker is get, handle, ack."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from persistqueue import SQLiteAckQueue
from persistqueue.exceptions import Empty

from benchmarks.load import handle, payload
from benchmarks.subject import Subject


class AckQueueSubject(Subject):
    note = "SQLiteAckQueue; get and ack, an item at a time; idle poll 1 ms"
    packages = ("persist-queue",)
    threads = True

    def __init__(self, place: str, url: str, variant: str) -> None:
        super().__init__(place, url, variant)
        self.folder = Path(place) / "queue"

    def _queue(self) -> SQLiteAckQueue:
        return SQLiteAckQueue(str(self.folder), multithreading=True, auto_resume=False)

    async def reset(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    async def open(self) -> None:
        self.queue = self._queue()

    async def close(self) -> None:
        self.queue.close()

    def one_blocking(self, kind: str, number: int) -> None:
        self.queue.put(payload(kind, number))

    async def left(self) -> int:
        return int(self.queue.ready_count() + self.queue.unack_count())

    def durability(self) -> str:
        # Both of its connections are made alike, and neither is given a setting.
        return ("OFF", "NORMAL", "FULL")[self.queue._putter.execute("PRAGMA synchronous").fetchone()[0]]

    def work(self, concurrency: int) -> None:
        queue = self._queue()
        while True:
            try:
                item = queue.get(block=False)
            except Empty:
                time.sleep(0.001)
                continue
            try:
                handle(item)
            except Exception:
                queue.ack_failed(item)
            else:
                queue.ack(item)


SUBJECT = AckQueueSubject
