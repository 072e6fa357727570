"""The store contract, on SQLite: on a file, and in memory."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from treadle.stores.sqlite import SQLiteStore
from treadle.testing import store_contract, tasks_contract


@asynccontextmanager
async def on_a_file() -> AsyncIterator[SQLiteStore]:
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(f"{folder}/tasks.db")
        yield store
        await store.close()


TestSQLiteFile = store_contract("sqlite", on_a_file)
TestSQLiteMemory = store_contract("sqlite in memory", lambda: SQLiteStore(":memory:"))
TestTasksOnSQLite = tasks_contract("tasks on sqlite", on_a_file)
