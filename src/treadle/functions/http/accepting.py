"""Accepting clients: as many as there is room for, and none while this process can have no more descriptors (F14)."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence

from treadle.functions.http.room import Room
from treadle.functions.seldom import SeldomLog

_AT_ONCE = 64  # before the loop turns to others
_AGAIN = 1.0


class Accepting:
    """Makes a connection of each client that comes to the sockets, which it closes in the end.

    asyncio's own way takes whatever comes, thousands before it looks at the first of them.
    """

    def __init__(self, sockets: Sequence[socket.socket], make: Callable[[], asyncio.Protocol], room: Room) -> None:
        self._sockets = sockets
        self._make = make
        self._room = room
        self._log = SeldomLog(logging.getLogger("treadle"))
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[object]] = set()
        self._again: asyncio.TimerHandle | None = None
        self._accepts = self._closed = False

    def start(self) -> None:
        """Accept from now on."""
        self._room.changed = self._resume
        self._resume()

    async def close(self) -> None:
        """Accept nobody more. Those who were accepted are connected then. Safe twice."""
        self._closed = True
        self._pause()
        if self._again is not None:
            self._again.cancel()
        for sock in self._sockets:
            sock.close()
        if self._connecting:
            await asyncio.wait(self._connecting)

    def _resume(self) -> None:
        if self._closed or self._accepts or self._again is not None or self._room.closed:
            return
        self._accepts = True
        for sock in self._sockets:
            self._loop.add_reader(sock, self._come, sock)

    def _pause(self) -> None:
        if self._accepts:
            self._accepts = False
            for sock in self._sockets:
                self._loop.remove_reader(sock)

    def _come(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            if self._room.full:
                self._room.clear()
                self._pause()  # until that one has gone, or another
                return
            try:
                accepted, _address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._cannot(error)
                return
            self._room.enter()
            task = self._loop.create_task(self._connect(accepted))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    def _cannot(self, error: OSError) -> None:
        """Too many open files, most likely. The client stays in the queue, and would be reported over and over."""
        self._pause()
        self._again = self._loop.call_later(_AGAIN, self._try_again)
        self._room.clear()
        self._log.warning("no connection can be accepted, trying again: %s", error.strerror or error)

    def _try_again(self) -> None:
        self._again = None
        self._resume()

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, accepted)
        except OSError:  # it has gone before it was there
            accepted.close()
            self._room.leave()
