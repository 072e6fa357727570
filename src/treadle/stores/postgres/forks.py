"""Forks: a child leaves the connections of its parent alone, and makes its own at its next use."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any, Protocol

from treadle.stores.postgres.driver import psycopg


class Forkable(Protocol):
    """What holds connections or threads."""

    def leave(self) -> None:
        """In the child of a fork: start afresh at the next use, with locks of its own, since the old ones may be held."""
        ...


_all: weakref.WeakSet[Forkable] = weakref.WeakSet()
_left: list[object] = []


def watch(one: Forkable) -> None:
    """From now on have it start afresh in the children of this process."""
    _all.add(one)


def leave(connection: psycopg.BaseConnection[Any], *, idle: bool) -> None:
    """In the child: take the wire away from the connection, so that nothing that is still done to it reaches the server.

    Closing it would send the parent's goodbye, or take its socket out of the epoll set that parent and child share. An idle
    one can be given up then; in another, the fork may have come in the middle of something.
    """
    with contextlib.suppress(OSError, psycopg.Error):
        detach(connection.pgconn.socket)
        if idle:
            connection.pgconn.finish()
    _left.append(connection)


def detach(descriptor: int) -> None:
    """In the child: have the descriptor lead nowhere, and keep its number, by which others may still know it."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.dup2(nowhere, descriptor, inheritable=False)
    finally:
        os.close(nowhere)


def _in_child() -> None:
    for one in list(_all):
        one.leave()


os.register_at_fork(after_in_child=_in_child)
