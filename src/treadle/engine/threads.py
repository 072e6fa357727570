"""Threads for plain `def` handlers: daemons, so that one that never ends cannot hold the process up (E11, E23)."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable

_IDLE_SECONDS = 2.0  # a thread that had nothing to do for so long ends


Done = Callable[[object, BaseException | None], None]


class HandlerThreads:
    """Runs calls in threads that are made when needed and end when idle."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], object], Done]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0  # threads that wait and are promised no call
        self._made = 0

    def run(self, call: Callable[[], object], done: Done) -> None:
        """Call in some thread, in a copy of the present context, and hand `done` the result or what was raised."""
        context = contextvars.copy_context()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._made += 1
                threading.Thread(target=self._serve, name=f"treadle-handler-{self._made}", daemon=True).start()
        self._calls.put((lambda: context.run(call), done))

    def _serve(self) -> None:
        while True:
            try:
                call, done = self._calls.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if not self._idle:
                        continue  # a call is promised to this thread and about to arrive
                    self._idle -= 1
                return
            result, error = _result(call)
            with self._lock:
                self._idle += 1  # before it is told, or the next call would find nobody idle and make a thread
            done(result, error)
            del call, done, result, error  # nothing of a finished job stays while the thread waits


def _result(call: Callable[[], object]) -> tuple[object, BaseException | None]:
    try:
        return call(), None
    except BaseException as error:  # SystemExit and the like fail the attempt and end no thread (E13)
        return None, error
