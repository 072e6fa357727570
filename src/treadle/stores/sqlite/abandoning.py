"""Leaving connections alone for good: after a fork, and where closing one would not be safe."""

from __future__ import annotations

import ctypes
import sqlite3
from collections.abc import Sequence


def abandon(connections: Sequence[sqlite3.Connection]) -> None:
    """See that these are never closed, not even at the end of the process, by a reference that nobody gives back.

    Closing may checkpoint, at a moment when another process commits. In the child of a fork it would also do so from
    what the parent's memory said at the time of the fork.
    """
    for connection in connections:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
