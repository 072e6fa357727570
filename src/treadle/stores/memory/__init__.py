"""The memory store: everything in this process, nothing after it; for tests, scripts and single-process programs."""

from treadle.stores.memory.adapter import MemoryStore

__all__ = ["MemoryStore"]
