"""RQ on Redis, with its SimpleWorker, which forks no process a job."""

from __future__ import annotations

from redis import Redis
from rq import Queue, SimpleWorker

from benchmarks.load import payload
from benchmarks.subject import Subject, payloads

_HANDLER = "benchmarks.load.handle"


class RQSubject(Subject):
    note = "SimpleWorker, a job at a time; result_ttl=0"
    packages = ("rq", "redis", "hiredis")
    threads = True

    async def open(self) -> None:
        self.redis = Redis.from_url(self.url)
        self.queue = Queue(connection=self.redis)

    async def close(self) -> None:
        self.redis.close()

    def one_blocking(self, kind: str, number: int) -> None:
        self.queue.enqueue(_HANDLER, payload(kind, number), result_ttl=0)

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            self.queue.enqueue_many([Queue.prepare_data(_HANDLER, (load,), result_ttl=0) for load in call])

    async def left(self) -> int:
        return int(self.queue.count) + int(self.queue.started_job_registry.count)

    def work(self, concurrency: int) -> None:
        redis = Redis.from_url(self.url)
        SimpleWorker([Queue(connection=redis)], connection=redis).work(logging_level="ERROR")


SUBJECT = RQSubject
