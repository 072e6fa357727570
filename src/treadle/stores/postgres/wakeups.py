"""Wake-ups: one thread and one connection that LISTEN for all who asked on this store (E26, S6)."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import unreachable
from treadle.stores.postgres.session import cut
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
        """End the subscription; the last one ends the thread and its connection."""
        self._ears.remove(self)


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

    def remove(self, subscription: Subscription) -> None:
        """Leave out a subscriber."""
        with self._lock:
            self._subscribers.discard(subscription)
            thread = self._thread
            if self._subscribers or thread is None:
                return
            self._thread = None
        thread.end()

    def close(self) -> None:
        """Leave out all."""
        for one in tuple(self._subscribers):
            self.remove(one)

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
        self.tried = threading.Event()

    def end(self) -> None:
        """Stop, soon."""
        self._ended = True
        os.write(self._write, b"x")
        if threading.current_thread() is not self:
            self.join(HEARTBEAT)

    def run(self) -> None:
        try:
            while not self._ended:
                try:
                    with psycopg.connect(
                        "",
                        autocommit=True,
                        prepare_threshold=None,
                        **self._settings.direct_conninfo,  # type: ignore[arg-type]  # parameters of libpq, by name
                    ) as connection:
                        self._listen(connection)
                except (psycopg.Error, OSError) as error:
                    if self._pause == SHORTEST_PAUSE:
                        reason = unreachable(self._settings.place, error)
                        log.info("not listening for wake-ups at the moment, polling goes on: %s", reason)
                self.tried.set()
                if not self._ended:
                    select.select([self._read], [], [], self._pause)
                    self._pause = min(self._pause * 2, LONGEST_PAUSE)
        finally:
            os.close(self._read)
            os.close(self._write)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        connection.add_notify_handler(lambda notification: self._heard(notification.pid))
        with _deadline(connection):
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
                with _deadline(connection):
                    connection.execute("select 1")
                asked = time.monotonic()

    def _take(self, connection: psycopg.pq.abc.PGconn) -> None:
        connection.consume_input()
        process = None
        while notification := connection.notifies():
            process = notification.be_pid
            self._heard(process)


@contextlib.contextmanager
def _deadline(connection: psycopg.Connection[Any]) -> Any:
    """Cut the connection if the block takes longer than a server that lives."""
    timer = threading.Timer(HEARTBEAT, cut, [connection.pgconn])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
