"""Wake-ups: one thread and one connection that LISTEN for all who asked on this store (E26, S6)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

from treadle.stores import forks
from treadle.stores.postgres.cutting import cut_after
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import unreachable
from treadle.stores.postgres.leaving import leave
from treadle.stores.postgres.settings import Settings

log = logging.getLogger("treadle.stores.postgres")

HEARTBEAT = 5.0  # seconds of silence after which the server is asked for a sign of life, and that it has to give one
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # between tries to connect


class Subscription:
    """One who listens (Listener)."""

    def __init__(self, ears: Ears, wake: Callable[[], None]) -> None:
        self._ears = ears
        self.wake = wake

    async def close(self) -> None:
        """End the subscription; the last one ends the thread too, which may take seconds while it is connecting."""
        ended = self._ears.remove(self)
        if ended is not None:
            await _joined(ended)


class Ears:
    """The subscribers of a store, and the thread that hears for them, which lives as long as there are any.

    A thread, since subscribers may be in several event loops, and any of those may be busy or gone. What died in silence is
    noticed by a question every few seconds, and replaced; after each new connection all are woken, for what was missed.
    """

    def __init__(self, settings: Settings, processes: Callable[[], set[int]]) -> None:
        self._settings = settings
        self._processes = processes
        self._lock = threading.Lock()
        self._subscribers: set[Subscription] = set()
        self._thread: _Ear | None = None
        forks.watch(self)

    def wake(self) -> None:
        """Wake all subscribers."""
        for one in tuple(self._subscribers):
            with contextlib.suppress(Exception):  # a loop that was closed, say: its subscriber will not come back
                one.wake()

    def add(self, wake: Callable[[], None]) -> tuple[Subscription, threading.Event | None]:
        """A new subscriber, and the event of the first connection made, or tried."""
        subscription = Subscription(self, wake)
        with self._lock:
            self._subscribers.add(subscription)
            if not self._settings.listen:
                return subscription, None
            if self._thread is None:
                self._thread = _Ear(self._settings, self._heard)
                self._thread.start()
            return subscription, self._thread.tried

    def remove(self, subscription: Subscription) -> _Ear | None:
        """Leave out a subscriber; the thread that ends with it, soon, if it was the last one."""
        with self._lock:
            self._subscribers.discard(subscription)
            thread = self._thread
            if self._subscribers or thread is None:
                return None
            self._thread = None
        thread.end()
        return thread

    def close(self) -> None:
        """Leave out all, and wait for the thread's end, some seconds at most."""
        for one in tuple(self._subscribers):
            ended = self.remove(one)
            if ended is not None and ended is not threading.current_thread():
                ended.join(HEARTBEAT)

    async def closed(self) -> None:
        """As `close`, in an event loop, and without holding it up."""
        for one in tuple(self._subscribers):
            await one.close()

    def leave(self) -> None:
        """In the child of a fork: the thread and the subscribers are the parent's (see stores/forks.py)."""
        self._lock = threading.Lock()
        self._subscribers = set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.leave()

    def _heard(self, process: int | None) -> None:
        """Wake, unless the notification is of this store's own doing: those who listen here were woken then."""
        if process is None or process not in self._processes():
            self.wake()


class _Ear(threading.Thread):
    """The thread: connects, listens, asks for signs of life, and connects again."""

    def __init__(self, settings: Settings, heard: Callable[[int | None], None]) -> None:
        super().__init__(name="treadle-listen", daemon=True)
        self._settings = settings
        self._heard = heard
        self._ended = False
        self._pause = SHORTEST_PAUSE
        self._read, self._write = os.pipe()
        self._connection: psycopg.Connection[Any] | None = None
        self.tried = threading.Event()

    def end(self) -> None:
        """Stop, soon. To be called once: the thread closes its end of the pipe, and this the other."""
        self._ended = True
        with contextlib.suppress(OSError):  # a thread that is gone reads nothing
            os.write(self._write, b"x")
        os.close(self._write)

    def leave(self) -> None:
        """In the child of a fork, where this thread does not run."""
        for descriptor in (self._read, self._write):
            with contextlib.suppress(OSError):
                forks.detach([descriptor])
        if self._connection is not None:
            leave(self._connection, idle=False)

    def run(self) -> None:
        poll = select.poll()  # not select(), which knows no descriptor beyond 1,023
        poll.register(self._read, select.POLLIN)
        try:
            while not self._ended:
                try:
                    with psycopg.connect(
                        "",
                        autocommit=True,
                        prepare_threshold=None,
                        **self._settings.direct_conninfo,  # type: ignore[arg-type]  # parameters of libpq, by name
                    ) as self._connection:
                        self._listen(self._connection)
                except Exception as error:  # whatever it is: a listener that ended for good would not be missed
                    if self._pause == SHORTEST_PAUSE:
                        reason = unreachable(self._settings.place, error)
                        log.info("not listening for wake-ups at the moment, polling goes on: %s", reason)
                self._connection = None
                self.tried.set()
                if not self._ended:
                    poll.poll(self._pause * 1000)
                    self._pause = min(self._pause * 2, LONGEST_PAUSE)
        finally:
            descriptor, self._read = self._read, -1
            os.close(descriptor)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        connection.add_notify_handler(lambda notification: self._heard(notification.pid))
        with cut_after(HEARTBEAT, connection):
            connection.execute(f'listen "{self._settings.channel}"'.encode())
        self._pause = SHORTEST_PAUSE
        self.tried.set()
        self._heard(None)
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        poll.register(connection.pgconn.socket, select.POLLIN)
        asked = time.monotonic()
        while not self._ended:
            ready = poll.poll(max(0.0, asked + HEARTBEAT - time.monotonic()) * 1000)
            if ready:
                self._take(connection.pgconn)
            if time.monotonic() >= asked + HEARTBEAT:
                with cut_after(HEARTBEAT, connection):
                    connection.execute("select 1")
                asked = time.monotonic()

    def _take(self, connection: psycopg.pq.abc.PGconn) -> None:
        connection.consume_input()
        process = None
        while notification := connection.notifies():
            process = notification.be_pid
            self._heard(process)


async def _joined(thread: threading.Thread) -> None:
    """Wait for the thread's end, some seconds at most, whatever the loop's own threads are busy with."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        thread.join(HEARTBEAT)
        with contextlib.suppress(RuntimeError):  # the loop did not wait for it
            loop.call_soon_threadsafe(ended.set)

    if thread.is_alive() and thread is not threading.current_thread():
        threading.Thread(target=wait, name="treadle-listen-end", daemon=True).start()
        await ended.wait()
