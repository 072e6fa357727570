"""A program that forks between two uses of a store, and whose child ends as it is told; says what came of it, line by line."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading

from treadle import Tasks, TreadleError
from treadle.stores.redis import RedisStore

DEADLINE = 10.0


def main(url: str, how: str) -> None:
    """`how` the child ends: exit, uses (the store, then exits), loops (in an event loop of its own), killed, or outlives."""
    store = RedisStore(url)
    tasks = Tasks(store)
    tasks.sync.enqueue("before", {})
    woken, there = threading.Event(), asyncio.new_event_loop()
    threading.Thread(target=there.run_forever, daemon=True).start()
    listener = asyncio.run_coroutine_threadsafe(store.listen(woken.set), there).result(DEADLINE)
    woken.wait(DEADLINE)
    hold, release = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(release)
        if how == "outlives":
            os.read(hold, 1)
            os._exit(0)
        in_child(store, tasks, how)
    if how != "outlives":
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    woken.clear()
    tell("parent", lambda: tasks.sync.enqueue("parent", {}))
    tell("again", lambda: tasks.sync.stats())
    print("woken" if woken.wait(DEADLINE) else "not woken", flush=True)
    print("pending", tasks.sync.stats().pending, flush=True)
    asyncio.run_coroutine_threadsafe(listener.close(), there).result(DEADLINE)
    tasks.sync.close()
    print("closed", flush=True)
    sys.stdin.read()
    os.close(release)
    if how == "outlives":
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def in_child(store: RedisStore, tasks: Tasks, how: str) -> None:
    match how:
        case "uses":
            tell("child", lambda: tasks.sync.enqueue("child", {}))
            tasks.sync.close()
        case "loops":

            async def use() -> None:
                await store.stats()
                await store.close()

            tell("child", lambda: asyncio.run(use()))
        case "killed":
            os._exit(0)
    gc.collect()
    sys.exit(0)


def tell(who: str, call) -> None:
    try:
        call()
    except TreadleError as error:
        print(who, error, flush=True)
    else:
        print(who, "ok", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
