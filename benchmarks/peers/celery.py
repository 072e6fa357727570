"""Celery on Redis, with threads and late acknowledgement, so that a crash loses no job."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from redis import Redis

from benchmarks.load import handle, payload
from benchmarks.processes import serve
from benchmarks.subject import Subject

app = Celery("bench", broker=os.environ["BENCH_URL"])
app.conf.update(task_ignore_result=True, worker_send_task_events=False, broker_connection_retry_on_startup=True)


@app.task(name="noop", acks_late=True)
def noop(load: Any) -> None:
    handle(load)


class CelerySubject(Subject):
    note = "threads; acks_late; results ignored; no gossip, mingle or heartbeat; prefetch of 64 a thread"
    packages = ("celery", "kombu", "redis", "hiredis")
    threads = True

    async def open(self) -> None:
        self.redis = Redis.from_url(self.url)

    async def close(self) -> None:
        self.redis.close()

    def one_blocking(self, kind: str, number: int) -> None:
        noop.delay(payload(kind, number))

    async def left(self) -> int:
        return int(self.redis.llen("celery")) + int(self.redis.hlen("unacked"))

    def work(self, concurrency: int) -> None:
        serve(
            "celery", "-A", "benchmarks.peers.celery", "worker", "--pool", "threads", "-c", str(concurrency), "-l", "ERROR",
            "-n", f"worker{os.environ['BENCH_SLOT']}@bench", "--without-gossip", "--without-mingle", "--without-heartbeat",
            "--prefetch-multiplier", "64",
        )  # fmt: skip


SUBJECT = CelerySubject
