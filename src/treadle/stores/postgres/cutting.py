"""Giving up on a server that falls silent, by ending the TCP connection under whoever waits on it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

from treadle.stores.postgres.driver import psycopg


def cut(connection: psycopg.pq.abc.PGconn) -> None:
    """End the TCP connection under a statement that waits on it: the wait then fails like that on a server that went away."""
    with contextlib.suppress(OSError, psycopg.Error):
        with socket.socket(fileno=os.dup(connection.socket)) as wire:
            wire.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def cut_after(seconds: float, connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Cut a blocking connection if the block takes longer than a server that lives."""
    timer = threading.Timer(seconds, cut, [connection.pgconn])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
