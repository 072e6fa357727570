"""A TCP proxy of the tests: between a client and a server it can cut, fall silent, and go on."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator


class Proxy:
    """Forwards 127.0.0.1:`port` to a target port. One thread moves all bytes.

    Silent, it takes what comes and passes nothing on, in either direction, as a network does that drops packets without a word:
    new connections are accepted and get no answer.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._flowing = True
        self._ended = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._bell, self._ringer = socket.socketpair()
        self.port: int = self._listener.getsockname()[1]
        self.accepted = 0
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        with self._lock:
            return len(self._pairs) // 2

    def cut(self) -> None:
        """Reset all connections; new ones are taken."""
        with self._lock:
            for one in self._pairs:
                with contextlib.suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                one.close()
            self._pairs.clear()
        self._ring()

    def stall(self) -> None:
        """Fall silent, without a word on any connection."""
        self._flowing = False
        self._ring()

    def resume(self) -> None:
        """Pass on again, what was held back first."""
        self._flowing = True
        self._ring()

    def close(self) -> None:
        """End, cutting what is left."""
        self._ended = True
        self._ring()
        self._thread.join(10)
        self.cut()
        for one in (self._listener, self._bell, self._ringer):
            one.close()

    def _ring(self) -> None:
        with contextlib.suppress(OSError):
            self._ringer.send(b"x")

    def _run(self) -> None:
        while not self._ended:
            with self._lock:
                sockets = [one for one in self._pairs if one.fileno() >= 0] if self._flowing else []
            try:
                ready, _, _ = select.select([self._listener, self._bell, *sockets], [], [])
            except (OSError, ValueError):
                continue  # one was closed under the wait
            for one in ready:
                if one is self._bell:
                    one.recv(4096)
                elif one is self._listener:
                    self._accept()
                elif self._flowing:
                    self._pass_on(one)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        self.accepted += 1
        try:
            server = socket.create_connection(("127.0.0.1", self._target), 5)
        except OSError:
            client.close()
            return
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._pairs[client], self._pairs[server] = server, client

    def _pass_on(self, one: socket.socket) -> None:
        with self._lock:
            other = self._pairs.get(one)
        if other is None:
            return
        try:
            data = one.recv(65536)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        with self._lock:
            self._pairs.pop(one, None)
            self._pairs.pop(other, None)
        one.close()
        other.close()


@contextlib.contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    """A proxy for the time of the block."""
    made = Proxy(target)
    try:
        yield made
    finally:
        made.close()
