"""A portal: an event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from treadle.engine.execution import in_handler

Result = TypeVar("Result")

_portals: weakref.WeakSet[Portal] = weakref.WeakSet()


class Portal:
    """Runs coroutines for blocking callers. The thread is a daemon, made at first use, and anew in a child of a fork."""

    def __init__(self) -> None:
        self.forget()
        _portals.add(self)

    def forget(self) -> None:
        """Begin anew, as in a child of a fork: the parent's thread does not exist there, and its lock may be held."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def call(self, work: Coroutine[Any, Any, Result], *, waits_for_jobs: bool = False) -> Result:
        """Run the coroutine in the portal's loop and wait for its result.

        Raises `RuntimeError` within that loop, for work that waits for the very job that calls it, and where the portal is
        closed meanwhile.
        """
        try:
            # Under the lock, so that what is handed over is there before a `close` ends the loop, which looks for it.
            with self._lock:
                loop = self._open()
                if threading.current_thread() is self._thread:
                    raise RuntimeError("a blocking call from within the loop that would have to run it; await the async twin")
                if waits_for_jobs and _runs_in(loop):
                    raise RuntimeError("a handler must not wait for its own worker; enqueue, and let the worker run it")
                future = asyncio.run_coroutine_threadsafe(work, loop)
        except BaseException:
            work.close()
            raise
        try:
            return future.result()
        except CancelledError:
            if self._loop is loop:
                raise
            raise RuntimeError(
                "tasks.sync was closed by another thread during this call; whether it was carried out is not known"
            ) from None
        except BaseException:
            future.cancel()
            raise

    def _open(self) -> asyncio.AbstractEventLoop:
        """The loop, started if need be. The lock is held."""
        if self._loop is None:
            loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=(loop,), name="treadle-portal", daemon=True)
            self._thread.start()
            self._loop = loop
        return self._loop

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))  # or their callers would wait for ever
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    def close(self) -> None:
        """End the loop and its thread; safe twice, and a later call opens a new one."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread = self._thread
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
            if thread is not None and thread is not threading.current_thread():
                thread.join(timeout=5.0)


def _runs_in(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the calling thread is that of a plain handler whose worker lives in the loop."""
    execution = in_handler.get()
    if execution is None or execution.settled:
        return False
    return execution.task is None or execution.task.get_loop() is loop


def _after_fork() -> None:
    for portal in [*_portals]:  # at once, since the child's first uses may come from several threads
        portal.forget()


os.register_at_fork(after_in_child=_after_fork)
