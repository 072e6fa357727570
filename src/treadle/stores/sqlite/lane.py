"""A lane: a daemon thread that takes all that is queued and hands it on as one batch."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from treadle.stores.sqlite.asks import Ask
from treadle.stores.sqlite.session import Session

_MOST = 512  # asks a batch, so that the first of many is not kept waiting for the last


class Server(Protocol):
    """What works in a lane. One call is under way at a time, and none raises."""

    def serve(self, batch: Sequence[Ask]) -> None:
        """Do the operations and deliver their answers."""
        ...

    def rest(self) -> float | None:
        """Called when nothing is queued; answers how many seconds to wait for work until the next rest, None: any time."""
        ...

    def shut(self) -> bool:
        """Close the connections, which the next `serve` opens again; answers whether they are closed."""
        ...


class Lane:
    """The thread and its queue. It ends after `stop`, when all that was put before is served."""

    def __init__(self, name: str, server: Server) -> None:
        self._queue: queue.SimpleQueue[Ask | None] = queue.SimpleQueue()
        self._server = server
        self._turn = threading.RLock()
        self._at_end: list[Callable[[], None]] = []
        work = (self._queue, server, self._turn, self._at_end)
        self._thread = threading.Thread(target=_run, args=work, name=name, daemon=True)
        self._thread.start()

    def pause(self, patience: float) -> bool:
        """Wait until the thread is between two batches, keep it there and close; whether that was done in time (seconds)."""
        return self._turn.acquire(timeout=patience) and self._server.shut()

    def resume(self) -> None:
        """Let the thread go on, if `pause` has stopped it."""
        with contextlib.suppress(RuntimeError):
            self._turn.release()

    def put(self, ask: Ask) -> None:
        """Queue an operation."""
        self._queue.put(ask)

    def nudge(self) -> None:
        """Have the server look around now, and not only at its next rest."""
        self._queue.put(Ask(_nothing, loop=None, reading=True))

    def stop(self, at_end: Callable[[], None] | None = None) -> None:
        """Have the thread end when it is through with what is queued; it calls `at_end` as its last step."""
        if at_end is not None:
            self._at_end.append(at_end)
        self._queue.put(None)

    def join(self) -> None:
        """Wait for the thread to end."""
        self._thread.join()


def _run(
    waiting: queue.SimpleQueue[Ask | None], server: Server, turn: threading.RLock, at_end: Sequence[Callable[[], None]]
) -> None:
    going = True
    try:
        while going:
            with turn:
                pause = server.rest()
            batch, going = _take(waiting, pause)
            if batch:
                with turn:
                    server.serve(batch)
        with turn:
            server.shut()
    finally:
        for call in at_end:
            call()


def _nothing(session: Session) -> bool:
    return True


def _take(waiting: queue.SimpleQueue[Ask | None], pause: float | None) -> tuple[list[Ask], bool]:
    batch: list[Ask] = []
    try:
        one = waiting.get(timeout=pause)
        while one is not None:
            batch.append(one)
            if len(batch) == _MOST:
                return batch, True
            one = waiting.get_nowait()
    except queue.Empty:
        return batch, True
    return batch, False
