"""Dramatiq on Redis: plain actors in threads, its normal way."""

from __future__ import annotations

import os
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from redis import Redis

from benchmarks.load import handle, payload
from benchmarks.processes import serve
from benchmarks.subject import Subject

dramatiq.set_broker(RedisBroker(url=os.environ["BENCH_URL"]))


@dramatiq.actor(actor_name="noop", max_retries=0)
def noop(load: Any) -> None:
    handle(load)


class DramatiqSubject(Subject):
    note = "one process; concurrency = threads"
    packages = ("dramatiq", "redis", "hiredis")
    threads = True

    async def open(self) -> None:
        self.redis = Redis.from_url(self.url)

    async def close(self) -> None:
        self.redis.close()

    def one_blocking(self, kind: str, number: int) -> None:
        noop.send(payload(kind, number))

    async def left(self) -> int:
        return int(self.redis.hlen("dramatiq:default.msgs"))

    def work(self, concurrency: int) -> None:
        serve("dramatiq", "benchmarks.peers.dramatiq", "--processes", "1", "--threads", str(concurrency))


SUBJECT = DramatiqSubject
