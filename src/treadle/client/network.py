"""Sockets that end with the call they serve.

httpx2 counts its timeouts for each piece that is read or written, so that a server which drips outlives them all. For
blocking calls no task can be cancelled; so every wait on a socket here ends at a moment that is the same for the whole call.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore2
import httpx2

from treadle.client.clock import monotonic


class Network(httpcore2.NetworkBackend):
    """Connects over TCP. What httpcore2 hands it as `timeout` are moments of the monotonic clock, and no durations."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """A connection to the first address of the host that takes one; each has an equal share of the time that is left."""
        with _errors(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        last: Exception = httpcore2.ConnectError(f"{host} has no address")
        for tried, (family, kind, protocol, _, address) in enumerate(places):
            connected = socket.socket(family, kind, protocol)
            try:
                with _errors(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                    connected.settimeout(_left(timeout) / (len(places) - tried))
                    connected.connect(address)
                    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return Connection(connected)
            except (httpcore2.ConnectTimeout, httpcore2.ConnectError) as error:
                connected.close()
                last = error
            except BaseException:
                connected.close()
                raise
        raise last


class Connection(httpcore2.NetworkStream):
    """A socket, with TLS or without, all of whose waits end at the moment that is passed as `timeout`."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes, or none at the end."""
        with _errors(httpcore2.ReadTimeout, httpcore2.ReadError):
            self._socket.settimeout(_left(timeout))
            return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All the bytes."""
        rest = memoryview(buffer)
        with _errors(httpcore2.WriteTimeout, httpcore2.WriteError):
            while rest:
                self._socket.settimeout(_left(timeout))
                rest = rest[self._socket.send(rest) :]

    def close(self) -> None:
        """Once and for all."""
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """The same connection with TLS; the whole handshake has the socket's timeout."""
        try:
            with _errors(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                self._socket.settimeout(_left(timeout))
                return Connection(ssl_context.wrap_socket(self._socket, server_hostname=server_hostname))
        except BaseException:
            self.close()
            raise

    def get_extra_info(self, info: str) -> Any:
        """`is_readable`: an idle connection that is has been closed by the server, and is not used again."""
        match info:
            case "ssl_object" if isinstance(self._socket, ssl.SSLSocket):
                return self._socket
            case "socket":
                return self._socket
            case "is_readable":
                if self._socket.fileno() < 0:
                    return True
                poll = select.poll()
                poll.register(self._socket, select.POLLIN)
                return bool(poll.poll(0))
            case _:
                return None


class Transport(httpx2.BaseTransport):
    """Carries the requests of a blocking client over connections that are kept for a while."""

    def __init__(self, ssl_context: ssl.SSLContext, limits: httpx2.Limits) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=Network(),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer, its body yet unread."""
        if not isinstance(request.stream, httpx2.SyncByteStream):
            raise TypeError("a blocking client sends no async body")
        url = httpcore2.URL(
            scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
        )
        with _as_httpx2():
            answer = self._pool.handle_request(
                httpcore2.Request(
                    request.method, url, headers=request.headers.raw, content=request.stream, extensions=request.extensions
                )
            )
        return httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx2():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def _left(moment: float | None) -> float:
    """The seconds until the moment. Raises `TimeoutError` where it is over: a socket would take 0 for "do not wait"."""
    left = float("inf") if moment is None else moment - monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return min(left, 86_400.0)


@contextlib.contextmanager
def _errors(late: type[Exception], broken: type[Exception]) -> Iterator[None]:
    """What sockets raise, as what httpcore2 expects of them."""
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except OSError as error:
        raise broken(str(error)) from error


@contextlib.contextmanager
def _as_httpx2() -> Iterator[None]:
    """What httpcore2 raises, as the error of the same name that httpx2 promises."""
    try:
        yield
    except Exception as error:
        same = getattr(httpx2, type(error).__name__, None)
        if isinstance(same, type) and issubclass(same, httpx2.TransportError):
            raise same(str(error)) from error
        raise
