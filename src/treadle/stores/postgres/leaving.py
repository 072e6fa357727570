"""Leaving a connection to the parent, in the child of a fork (see stores/forks.py)."""

from __future__ import annotations

import contextlib
from typing import Any

from treadle.stores.forks import detach
from treadle.stores.postgres.driver import psycopg

_left: list[object] = []


def leave(connection: psycopg.BaseConnection[Any], *, idle: bool) -> None:
    """Take the wire away from the connection, so that nothing that is still done to it reaches the server.

    An idle one can be given up then; in another, the fork may have come in the middle of something.
    """
    with contextlib.suppress(OSError, psycopg.Error):
        detach([connection.pgconn.socket])
        if idle:
            connection.pgconn.finish()
    _left.append(connection)
