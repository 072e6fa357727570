"""What test_forks.py runs: a process that uses a store, forks, and says line by line what became of parent and child.

The child leaves by `sys.exit`, as gunicorn's workers do, so what is registered for the end of a process is done there too.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

from treadle import Tasks
from treadle.core.job import NewJob
from treadle.core.store import Claim, Demand
from treadle.stores.postgres import PostgresStore
from treadle.testing.factory import uuid7

PAUSE = threading.Event()
DEADLINE = 10.0


def child_exits(url: str) -> None:
    """Idle connections, and the thread that listens, are the parent's after the child's end too."""
    store = PostgresStore(url)
    tasks = Tasks(store)
    tasks.sync.enqueue("job")
    woken = threading.Event()
    asyncio.run(_listen(store, woken.set))
    _fork(lambda: None)
    own = store._runner.processes()
    with psycopg.connect(url.partition("?")[0]) as connection:
        alive = {row[0] for row in connection.execute("select pid from pg_stat_activity where application_name = 'treadle'")}
    print("connections alive", bool(own) and own <= alive)
    used = time.process_time()
    PAUSE.wait(0.5)  # that nothing is done in this time is the subject here
    print("idle", time.process_time() - used < 0.2)
    woken.clear()
    other = PostgresStore(url)
    asyncio.run(_enqueue(other, 1))
    print("woken", woken.wait(DEADLINE))
    tasks.sync.enqueue("job")
    print("pending", tasks.sync.stats().pending)
    tasks.sync.close()


def child_works(url: str) -> None:
    """A child uses the store, its keeper and a listener over connections of its own, and is heard by its parent."""
    store = PostgresStore(url)
    keeper = store.lease_keeper()
    asyncio.run(_enqueue(store, 1))
    claimed = asyncio.run(store.claim("t", [Demand(1)], worker="w", lease=60.0))
    claim = Claim(claimed.jobs[0].id, "t")
    keeper.renew([claim], 60.0)
    parent, child = threading.Event(), threading.Event()
    asyncio.run(_listen(store, parent.set))

    def work() -> None:
        asyncio.run(_listen(store, child.set))
        child.clear()
        other = PostgresStore(url)
        asyncio.run(_enqueue(other, 2))
        print("child woken", child.wait(DEADLINE))
        print("child renews", keeper.renew([claim], 60.0) == {claim})
        asyncio.run(_enqueue(store, 3))
        asyncio.run(store.close())

    parent.clear()
    _fork(work)
    print("parent woken", parent.wait(DEADLINE))
    print("parent renews", keeper.renew([claim], 60.0) == {claim})
    keeper.close()
    asyncio.run(store.close())


def call_under_way(url: str) -> None:
    """A call that waits for the server while a child comes and goes has its answer."""
    tasks = Tasks(PostgresStore(url))
    job = tasks.sync.enqueue("job")
    ended: list[str] = []

    def call() -> None:
        try:
            tasks.sync.run_now(job.id)
            ended.append("well")
        except Exception as error:
            ended.append(repr(error))

    thread = threading.Thread(target=call)
    blocker = psycopg.connect(url.partition("?")[0])  # not in a `with`, which the child would leave too
    blocker.execute(f"lock table {url.partition('schema=')[2]}.jobs in access exclusive mode".encode())
    thread.start()
    _until_one_waits(url)
    _fork(lambda: None)
    blocker.close()
    thread.join(DEADLINE)
    print("the call ended", *ended)
    tasks.sync.close()


def locks_held(url: str) -> None:
    """A lock that another thread of the parent holds at the fork keeps nobody waiting in the child."""
    store = PostgresStore(url)
    with store._runner._lock, store._ears._lock:
        _fork(lambda: asyncio.run(_listen_and_close(store)))
    asyncio.run(store.close())


def _fork(work: Callable[[], None]) -> None:
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        work()
        sys.exit(0)
    until = time.monotonic() + 2 * DEADLINE
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            print("child exits", os.waitstatus_to_exitcode(status))
            return
        PAUSE.wait(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    print("child hangs")


def _until_one_waits(url: str) -> None:
    until = time.monotonic() + DEADLINE
    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        while time.monotonic() < until:
            if connection.execute("select from pg_locks where not granted").fetchone() is not None:
                return
            PAUSE.wait(0.01)


async def _listen(store: PostgresStore, wake: Callable[[], None]) -> Any:
    return await store.listen(wake)


async def _listen_and_close(store: PostgresStore) -> None:
    listener = await store.listen(lambda: None)
    await _enqueue(store, 1)
    await listener.close()


async def _enqueue(store: PostgresStore, number: int) -> None:
    await store.enqueue([NewJob(uuid7(number), "job")])


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
