"""Ports for functions: free ones, and whether it is really the function that listens there."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

# Below the range from which systems take the ports of outgoing connections: one of those cannot come between the choice of a
# port and the moment the function listens on it.
LOWEST, HIGHEST = 20_000, 32_767
_LISTENING = "0A"
_PROC = Path("/proc")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses at this moment. Raises `OSError` where none is found."""
    for _ in range(200):
        port = LOWEST + secrets.randbelow(HIGHEST - LOWEST + 1)
        if not taken(port):
            return port
    with socket.socket() as any_port:  # a crowded or an odd machine: whatever the system gives
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


def taken(port: int) -> bool:
    """Whether a server cannot listen on that port of 127.0.0.1, since another one does."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what an ended server left behind is no hindrance
        try:
            trial.bind(("127.0.0.1", port))
            trial.listen(1)
        except OSError as error:
            return error.errno in (errno.EADDRINUSE, errno.EACCES)
        return False


def listens(port: int, group: int) -> bool:
    """Whether a process of that group listens on the port: on Linux by what the kernel says, elsewhere it is believed."""
    listeners = _listeners(port)
    if listeners is None:
        return True
    return any(_holds(pid, listeners) for pid in _members(group)) if listeners else False


def _listeners(port: int) -> set[str] | None:
    """The sockets that listen on the port, as the links to them read; None where the system does not tell."""
    found, told = set(), False
    for table in ("tcp", "tcp6"):
        try:
            lines = (_PROC / "self/net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        told = True
        for line in lines:
            columns = line.split()
            if columns[3] == _LISTENING and int(columns[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{columns[9]}]")
    return found if told else None


def _members(group: int) -> Iterator[int]:
    """The processes of the group, its leader first, which is the one in nearly all cases."""
    yield group
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and int(folder.name) != group:
            try:
                after_name = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(after_name[2]) == group:
                yield int(folder.name)


def _holds(pid: int, sockets: set[str]) -> bool:
    try:
        return any(str(link.readlink()) in sockets for link in (_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return False
