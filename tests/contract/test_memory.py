"""The store contract, and the library's on top of it, on the memory store."""

from __future__ import annotations

from treadle.stores.memory import MemoryStore
from treadle.testing import store_contract, tasks_contract

TestMemory = store_contract("memory", MemoryStore)
TestTasksOnMemory = tasks_contract("tasks on memory", MemoryStore)
