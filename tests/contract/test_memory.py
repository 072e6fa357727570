"""The store contract, on the memory store."""

from __future__ import annotations

from treadle.stores.memory.adapter import MemoryStore
from treadle.testing import store_contract

TestMemory = store_contract("memory", MemoryStore)
