"""The Redis and Valkey store: every move one atomic Lua script, on one server, behind sentinels, or in a cluster (S7)."""

from treadle.stores.redis.adapter import RedisStore

__all__ = ["RedisStore"]
