"""The store contract, on a real Valkey, in a cluster, behind a sentinel, and on the system's Redis where there is one."""

from __future__ import annotations

import functools

from tests.servers import valkey

from treadle.stores.redis import RedisStore
from treadle.testing import store_contract, tasks_contract

# What is about values and not about keys needs no second run in a cluster or behind a sentinel.
ELSEWHERE = dict.fromkeys(("model", "payloads", "times", "transitions"), "it is run on one server, and is the same here")


@functools.cache
def cluster() -> valkey.ValkeyCluster:
    return valkey.ValkeyCluster()


@functools.cache
def sentinels() -> valkey.ValkeySentinels:
    return valkey.ValkeySentinels()


@functools.cache
def system() -> valkey.ValkeyServer:
    return valkey.ValkeyServer(valkey.system_binary())


def on_valkey() -> RedisStore:
    server = valkey.shared()
    return RedisStore(server.url, prefix=server.fresh_prefix())


def in_a_cluster() -> RedisStore:
    return RedisStore(cluster().url, prefix=cluster().nodes[0].fresh_prefix())


def behind_a_sentinel() -> RedisStore:
    return RedisStore(sentinels().url, prefix=sentinels().primary.fresh_prefix())


def on_the_systems_redis() -> RedisStore:
    return RedisStore(system().url, prefix=system().fresh_prefix())


TestValkey = store_contract("valkey", on_valkey)
TestCluster = store_contract("valkey-cluster", in_a_cluster, skip=ELSEWHERE)
TestSentinel = store_contract("valkey-sentinel", behind_a_sentinel, skip=ELSEWHERE)
TestSystemRedis = store_contract(
    "system-redis", on_the_systems_redis, skip=None if valkey.system_binary() else "no redis-server is installed here"
)
TestTasksOnValkey = tasks_contract("tasks on valkey", on_valkey)
