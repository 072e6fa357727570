"""The two threads of a store, started at first use, and how operations reach them from any loop or thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from treadle.core.errors import StoreUnavailable
from treadle.stores.sqlite import forks
from treadle.stores.sqlite.asks import Ask
from treadle.stores.sqlite.lane import Lane
from treadle.stores.sqlite.opening import Options
from treadle.stores.sqlite.reader import Reader
from treadle.stores.sqlite.session import Session
from treadle.stores.sqlite.wakeups import Listeners
from treadle.stores.sqlite.writer import Writer

T = TypeVar("T")

_REST = 5.0  # seconds that a fork waits for the threads, beyond the time that they may wait for a lock


class _Threads(NamedTuple):
    """The threads of an open store. In memory one does everything, since its connection is the database."""

    writer: Writer
    writing: Lane
    reader: Reader | None
    reading: Lane


class Connection:
    """A database as the store sees it: operations go in, answers come back to whoever waits, wherever that is."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.listeners = Listeners()
        self._lock = threading.Lock()
        self._running: list[_Threads] = []  # none or one; a list, so that the finalizer sees it change without holding self
        weakref.finalize(self, _retire, self._running).atexit = False
        self._at_rest = True
        self._cut_off = False
        forks.watch(self)

    async def write(self, operation: Callable[[Session], T], peek: Callable[[Session], T | None] | None = None) -> T:
        """Run the operation in the next transaction; where `peek` answers, that is the answer and nothing is locked.

        If the caller is cancelled before its operation was begun, nothing is stored; after that it is done all the same.
        """
        ask = Ask(operation, loop=asyncio.get_running_loop(), peek=peek)
        with self._lock:
            self._threads().writing.put(ask)
        answer: T = await ask.future
        return answer

    def write_blocking(self, operation: Callable[[Session], T]) -> T:
        """As `write`, from a thread that may wait."""
        ask = Ask(operation, loop=None)
        with self._lock:
            self._threads().writing.put(ask)
        answer: T = ask.future.result()
        return answer

    async def read(self, operation: Callable[[Session], T]) -> T:
        """Run an operation that changes nothing."""
        ask = Ask(operation, loop=asyncio.get_running_loop(), reading=True)
        if not self._opened:
            await self.open()
        with self._lock:
            self._threads().reading.put(ask)
        answer: T = await ask.future
        return answer

    async def open(self) -> str:
        """See that the database is open and migrated; answers what was done to its tables."""
        ask = Ask(_nothing, loop=asyncio.get_running_loop(), reading=True)
        with self._lock:
            threads = self._threads()
            threads.writing.put(ask)
        await ask.future
        return threads.writer.migrated

    def tidy(self) -> None:
        """Have the writer make a checkpoint as soon as nobody else writes; waits for nothing.

        It does so after each commit that finds the log large, be there anything to commit or not.
        """
        with self._lock:
            self._threads().writing.put(Ask(_nothing, loop=None))

    async def close(self) -> None:
        """End both threads, when they are through with what was asked before; safe twice."""
        with self._lock:
            threads = self._running.pop() if self._running else None
        if threads is None:
            return
        # The last thread itself tells that it ends: those of the loop's executor may all be held by handlers.
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has closed, and nobody waits any more
                loop.call_soon_threadsafe(ended.set)

        if threads.reading is threads.writing:
            threads.writing.stop(tell)
        else:  # one after the other: who closes last tidies the log up, which a reader cannot
            threads.reading.stop(lambda: threads.writing.stop(tell))
        await ended.wait()
        threads.reading.join()
        threads.writing.join()

    def pause(self) -> None:
        """Before a fork: no thread is in SQLite, and no connection is open (see forks.py)."""
        self._lock.acquire()
        if self._running and not self.options.in_memory:
            threads = self._running[0]
            patience = self.options.busy_timeout + _REST
            self._at_rest = threads.reading.pause(patience) and threads.writing.pause(patience)

    def resume(self) -> None:
        """After a fork, in the parent."""
        if self._running and not self.options.in_memory:
            self._running[0].writing.resume()
            self._running[0].reading.resume()
        self._lock.release()

    def leave(self) -> None:
        """After a fork, in the child: its threads are gone, and who listened. What is in memory stays with the parent."""
        self._lock = threading.Lock()
        self.listeners.clear()
        if self._running:
            threads = self._running.pop()
            threads.writer.leave()
            if threads.reader is not None:
                threads.reader.leave()
            self._cut_off = not self._at_rest

    @property
    def _opened(self) -> bool:
        return bool(self._running) and self._running[0].writer.opened

    def _threads(self) -> _Threads:
        """The threads, started if need be. The lock is held."""
        if self._cut_off:
            raise StoreUnavailable(
                f"this process was forked while the SQLite store {self.options.path} was busy for too long; start it anew"
            )
        if not self._running:
            writer = Writer(self.options, self.listeners)
            writing = Lane("treadle sqlite writer", writer)
            writer.nudge = writing.nudge
            if self.options.in_memory:
                self._running.append(_Threads(writer, writing, None, writing))
            else:
                reader = Reader(self.options)
                self._running.append(_Threads(writer, writing, reader, Lane("treadle sqlite reader", reader)))
        return self._running[0]


def _nothing(session: Session) -> bool:
    return True


def _retire(running: list[_Threads]) -> None:
    """Have the threads end of a store that was dropped without being closed."""
    for threads in running:
        threads.reading.stop()
        threads.writing.stop()
