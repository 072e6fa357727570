"""Closing a store while the threads of the loop's executor are all held: nothing of it waits behind them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from treadle.stores.postgres import PostgresStore


def test_a_close_needs_no_thread_of_the_loops_executor(database: str) -> None:
    release = threading.Event()

    async def main() -> None:
        store = PostgresStore(database, migrate=True)
        await store.listen(lambda: None)
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        held = loop.run_in_executor(None, release.wait, 40)
        try:
            async with asyncio.timeout(10):
                await store.close()
        finally:
            release.set()
            await held
        for thread in threading.enumerate():
            if thread.name.startswith("treadle-listen"):
                thread.join(10)
                assert not thread.is_alive(), thread

    asyncio.run(main())
