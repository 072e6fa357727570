"""A batched loop over redis-py and Lua that keeps the full record: claims overlap with finishes on a second connection.

It is at-least-once: leases in a sorted set, a token checked at the finish, a lookup of the handler, a JSON decode and an
asyncio task a job. No retries, no lease renewal.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis

from benchmarks.load import handle, payload
from benchmarks.subject import Subject, payloads

# ARGV: now, then id and payload of each job.
ADD = """
for i = 2, #ARGV, 2 do
  redis.call('HSET', '{bench}:job:' .. ARGV[i], 'queue', 'default', 'name', 'noop', 'payload', ARGV[i + 1], 'state', 'pending',
    'priority', 0, 'run_at', ARGV[1], 'created_at', ARGV[1], 'attempts', 0, 'max_attempts', 5)
  redis.call('ZADD', KEYS[1], ARGV[1], ARGV[i])
end
redis.call('PUBLISH', '{bench}:wake', '')
"""
# ARGV: limit, now, lease_until, token. Answers id, name and payload of each job.
CLAIM = """
local ids = redis.call('ZPOPMIN', KEYS[1], ARGV[1])
local out = {}
for i = 1, #ids, 2 do
  local job = '{bench}:job:' .. ids[i]
  redis.call('ZADD', KEYS[2], ARGV[3], ids[i])
  redis.call('HINCRBY', job, 'attempts', 1)
  redis.call('HSET', job, 'state', 'running', 'worker', 'bare', 'token', ARGV[4], 'lease_until', ARGV[3], 'started_at', ARGV[2])
  local read = redis.call('HMGET', job, 'name', 'payload')
  out[#out + 1] = ids[i]
  out[#out + 1] = read[1]
  out[#out + 1] = read[2]
end
return out
"""
# ARGV: now, token, then id and error (empty: done) of each job.
FINISH = """
for i = 3, #ARGV, 2 do
  local job = '{bench}:job:' .. ARGV[i]
  if redis.call('HGET', job, 'token') == ARGV[2] then
    redis.call('ZREM', KEYS[2], ARGV[i])
    redis.call('HDEL', job, 'token', 'worker', 'lease_until')
    if ARGV[i + 1] == '' then
      redis.call('HSET', job, 'state', 'done', 'finished_at', ARGV[1])
      redis.call('ZADD', KEYS[3], ARGV[1], ARGV[i])
    else
      redis.call('HSET', job, 'state', 'dead', 'finished_at', ARGV[1], 'last_error', ARGV[i + 1])
      redis.call('ZADD', KEYS[4], ARGV[1], ARGV[i])
    end
  end
end
"""
KEYS = ["{bench}:ready", "{bench}:leases", "{bench}:done", "{bench}:dead"]


async def noop(load: Any) -> None:
    handle(load)


HANDLERS = {"noop": noop}


class Bare(Subject):
    note = "no library; full record kept as done; concurrency = claim size"
    packages = ("redis", "hiredis")

    async def open(self) -> None:
        self.redis = Redis.from_url(self.url)
        self.add = self.redis.register_script(ADD)

    async def close(self) -> None:
        await self.redis.aclose()

    async def _add(self, loads: list[Any]) -> None:
        arguments: list[Any] = [time.time()]
        for load in loads:
            arguments += (uuid.uuid4().hex, json.dumps(load))
        await self.add(keys=KEYS, args=arguments)

    async def one(self, kind: str, number: int) -> None:
        await self._add([payload(kind, number)])

    async def bulk(self, kind: str, numbers: range) -> None:
        for call in payloads(kind, numbers):
            await self._add(call)

    async def left(self) -> int:
        return int(await self.redis.zcard(KEYS[0])) + int(await self.redis.zcard(KEYS[1]))

    async def ended(self) -> Mapping[str, int]:
        return {"done": int(await self.redis.zcard(KEYS[2])), "dead": int(await self.redis.zcard(KEYS[3]))}

    def work(self, concurrency: int) -> None:
        asyncio.run(self._work(concurrency))

    async def start_here(self, concurrency: int) -> None:
        self._task = asyncio.create_task(self._work(concurrency))

    async def stop_here(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self, concurrency: int) -> None:
        async with (
            Redis.from_url(self.url, decode_responses=True) as redis,
            redis.pubsub(ignore_subscribe_messages=True) as news,
        ):
            claim, finish = redis.register_script(CLAIM), redis.register_script(FINISH)
            await news.subscribe("{bench}:wake")
            arrived = asyncio.Event()
            listening = asyncio.create_task(_listen(news, arrived))
            writing: asyncio.Task[None] | None = None
            while not listening.done():
                arrived.clear()
                token = uuid.uuid4().hex
                now = time.time()
                rows = await claim(keys=KEYS, args=[concurrency, now, now + 60, token])
                if writing is not None:
                    await writing
                    writing = None
                if not rows:
                    await arrived.wait()
                    continue
                ended: list[str] = []
                await asyncio.gather(*(_attempt(*rows[at : at + 3], ended) for at in range(0, len(rows), 3)))
                writing = asyncio.create_task(finish(keys=KEYS, args=[time.time(), token, *ended]))
                if len(rows) < concurrency * 3:
                    await writing
                    writing = None


async def _listen(news: Any, arrived: asyncio.Event) -> None:
    async for _ in news.listen():
        arrived.set()


async def _attempt(ident: str, name: str, text: str, ended: list[str]) -> None:
    try:
        await HANDLERS[name](json.loads(text))
        ended += (ident, "")
    except Exception as error:
        ended += (ident, f"{type(error).__name__}: {error}")


SUBJECT = Bare
