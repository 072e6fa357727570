"""A look at a process from outside: does its port accept a connection, or its health path answer 2xx."""

from __future__ import annotations

import asyncio
import errno
import socket

from treadle.functions.shortage import lacking

HOST = "127.0.0.1"
_MOST = 4096  # bytes of an answer that are read to find its status


async def trouble(port: int, health: str | None, within: float) -> str | None:
    """What is wrong, in a few words, or None where all is well.

    Raises `TimeoutError` where the connection is not accepted in time, which says that the process is busy rather than gone,
    and `OSError` where something is lacking here, which says nothing of the process.
    """
    try:
        return await _trouble(port, health, within)
    except OSError as error:
        if isinstance(error, TimeoutError) or lacking(error):
            raise
        return "its port refuses connections"


async def _trouble(port: int, health: str | None, within: float) -> str | None:
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        try:
            async with asyncio.timeout(within):
                await loop.sock_connect(connection, (HOST, port))
            met_itself = connection.getsockname() == connection.getpeername()
        except OSError as error:
            # Whether a reset that follows is seen here is chance, so it cannot count: the connection was accepted.
            if error.errno not in (errno.ECONNRESET, errno.ENOTCONN):
                raise
            met_itself = False
        if met_itself:
            return "its port refuses connections"  # which happens on a port nobody listens on
        return None if health is None else await _unhealthy(connection, port, health, within)


async def _unhealthy(connection: socket.socket, port: int, health: str, within: float) -> str | None:
    request = f"GET {health} HTTP/1.1\r\nhost: {HOST}:{port}\r\nconnection: close\r\n\r\n"
    loop, head = asyncio.get_running_loop(), b""
    try:
        async with asyncio.timeout(within):
            await loop.sock_sendall(connection, request.encode())
            while b"\n" not in head and len(head) < _MOST:
                data = await loop.sock_recv(connection, _MOST)
                if not data:
                    break
                head += data
    except TimeoutError:
        return f"{health} did not answer within {within:g} s"
    except OSError as error:
        if lacking(error):
            raise
        return f"{health} broke off its answer"
    words = head.partition(b"\n")[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        return f"{health} gave no HTTP answer"
    return None if words[1][:1] == b"2" and len(words[1]) == 3 else f"{health} answered {words[1][:3].decode()}"
