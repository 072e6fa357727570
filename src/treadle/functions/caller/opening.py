"""Opening a connection: looking a host up, and trying its addresses until one takes the connection up (RFC 8305)."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from treadle.functions.caller.place import Place

HEAD_START = 0.25  # seconds that an address has before the next one is tried beside it
LOOK_UPS = 16  # at once, in threads that nobody else waits for: a name server may take half a minute to say nothing

_Address = tuple[socket.AddressFamily, Any]


class Opening:
    """Opens sockets. asyncio's own way to do so leaves one behind when it is cancelled at the wrong moment (Python 3.11)."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    async def connect(self, place: Place) -> socket.socket:
        """A socket that is connected with the place. Raises the error of its address, an `ExceptionGroup` for several."""
        addresses = await self._addresses(place)
        if len(addresses) == 1:
            return await _connected(addresses[0])
        return await _first_connected(addresses)

    def close(self) -> None:
        """Let the threads go when they have done; safe twice."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)  # a call under way still gets its answer

    async def _addresses(self, place: Place) -> Sequence[_Address]:
        if place.literal:
            return [(socket.AF_INET6 if ":" in place.host else socket.AF_INET, (place.host, place.port))]
        if self._threads is None:
            self._threads = ThreadPoolExecutor(LOOK_UPS, thread_name_prefix="treadle-names")
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, socket.getaddrinfo, place.host, place.port, 0, socket.SOCK_STREAM
        )
        return [(family, address) for family, _, _, _, address in found]


async def _connected(address: _Address) -> socket.socket:
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL and not _can_be_sent_to(address):
            raise OSError(errno.ENETUNREACH, "this machine has no address to call it from") from None
        raise
    return sock


def _can_be_sent_to(address: _Address) -> bool:
    """Whether there is a way to the address at all: no free port, and no address such as ::1 here, give the same error.

    Nothing is sent: datagrams have no connections, but ports of their own, and are routed in the same way.
    """
    family, where = address
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect(where)
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True


async def _first_connected(addresses: Sequence[_Address]) -> socket.socket:
    """The first socket that is connected. Each address is tried when the one before has failed, or has had its head start."""
    waiting = list(reversed(addresses))
    trying: set[asyncio.Task[socket.socket]] = set()
    failed: list[Exception] = []
    try:
        while waiting or trying:
            if waiting:
                trying.add(asyncio.create_task(_connected(waiting.pop())))
            done, _ = await asyncio.wait(trying, timeout=HEAD_START if waiting else None, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                trying.remove(task)
                error = task.exception()
                if error is None:
                    return task.result()
                if isinstance(error, Exception):
                    failed.append(error)
        raise ExceptionGroup("no address took the connection up", failed)
    finally:
        for task in trying:
            task.cancel()
            task.add_done_callback(_let_go)


def _let_go(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()  # it was connected as well
