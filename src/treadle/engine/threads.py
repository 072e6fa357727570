"""Threads for plain `def` handlers: daemons, so that one that never ends cannot hold the process up (E11, E23)."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable

_IDLE_SECONDS = 2.0  # a thread that had nothing to do for so long ends


class HandlerThreads:
    """Runs calls in threads that are made when needed and end when idle."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._made = 0

    def run(self, call: Callable[[], object], done: Callable[[object, BaseException | None], None]) -> None:
        """Call in some thread, in a copy of the present context, and hand `done` the result or what was raised."""
        context = contextvars.copy_context()

        def work() -> None:
            try:
                result: object = context.run(call)
            except BaseException as error:  # SystemExit and the like fail the attempt and end no thread (E13)
                done(None, error)
            else:
                done(result, None)

        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._made += 1
                threading.Thread(target=self._serve, name=f"treadle-handler-{self._made}", daemon=True).start()
        self._calls.put(work)

    def _serve(self) -> None:
        while True:
            try:
                work = self._calls.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if not self._idle:
                        continue  # a call is promised to this thread and about to arrive
                    self._idle -= 1
                return
            work()
            del work
            with self._lock:
                self._idle += 1
