"""The sockets that the service listens on, or one line about why it cannot."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import sys
from typing import Any

from treadle.core.errors import InvalidArgument, TreadleError

BACKLOG = 2048
_ROUNDS = 20  # for a free port that is free on every address of the host


class CannotListen(TreadleError):
    """The address is taken, not allowed, or not one of this machine."""

    code = "cannot_listen"


async def listening(host: str, port: int) -> list[socket.socket]:
    """Sockets bound to each address of the host, all on one port; 0 is any free one.

    Raises `InvalidArgument` for what is no host or port, and `CannotListen`.
    """
    if not 0 <= port <= 65_535:
        raise InvalidArgument(f"the port must be from 0 to 65535, not {port}")
    if not host or not host.isprintable() or " " in host:
        raise InvalidArgument(f"the host must be a name or an address, such as 127.0.0.1 or 0.0.0.0 for all; not {host[:80]!r}")
    addresses = await _addresses(host, port)
    for left in reversed(range(_ROUNDS)):
        sockets: list[socket.socket] = []
        try:
            for family, address in addresses:
                taken = sockets[0].getsockname()[1] if sockets else port
                _add(sockets, family, (address[0], taken, *address[2:]), alone=len(addresses) == 1)
        except OSError as error:
            for made in sockets:
                made.close()
            if port == 0 and sockets and left and error.errno == errno.EADDRINUSE:
                continue  # the port that was free on the first address is taken on another
            raise CannotListen(_reason(error, host, port)) from None
        if sockets:
            return sockets
    raise CannotListen(f"cannot listen on {_shown(host, port)}: this machine has no such address")


async def _addresses(host: str, port: int) -> list[tuple[int, tuple[Any, ...]]]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is no host name"
        raise CannotListen(f"cannot listen on {_shown(host, port)}: the host is unknown ({why})") from None
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _add(sockets: list[socket.socket], family: int, address: tuple[object, ...], *, alone: bool) -> None:
    made = None
    try:
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio leaves Nagle's delay on
        if sys.platform != "win32":  # where it would let two programs share the port
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(BACKLOG)  # now, and not when it serves: on Linux only this tells that the address is taken
        made.setblocking(False)
        sockets.append(made)
    except OSError as error:
        if made is not None:
            with contextlib.suppress(OSError):
                made.close()
        if alone or error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise  # else `localhost` names an IPv6 address that this machine has not


def _reason(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            why = "another program listens there; stop it, or choose another port"
        case errno.EACCES | errno.EPERM:
            why = "this user may not; choose a port from 1024 up"
        case errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT:
            why = "this machine has no such address; 127.0.0.1 is itself alone, 0.0.0.0 all its addresses"
        case _:
            why = error.strerror or str(error)
    return f"cannot listen on {_shown(host, port)}: {why}"


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
