"""Forks: a child leaves the connections of its parent alone, for good, and makes its own at its next use (S7).

What an event loop watches stands in a table of the system's that parent and child share. A child that closed its copy of a
connection, as the mere end of its process would, takes it out of that table: the parent would never hear of answers again.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Iterable
from typing import Protocol


class Forkable(Protocol):
    """What has connections of an event loop."""

    def leave(self) -> None:
        """In the child of a fork: forget them, and begin anew at the next use."""
        ...


_all: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(one: Forkable) -> None:
    """From now on have it told in the child of each fork."""
    _all.add(one)


def abandon(thing: object) -> None:
    """See that it is never cleared away, not even at the end of the process, by a reference that nobody gives back."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def detach(descriptors: Iterable[int]) -> None:
    """In the child: have its copies of the parent's sockets lead nowhere, else the parent could not close them for good.

    They keep their numbers, by which what was copied along still knows them.
    """
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for descriptor in descriptors:
            os.dup2(nowhere, descriptor, inheritable=False)
    finally:
        os.close(nowhere)


def _in_child() -> None:
    for one in list(_all):
        one.leave()


os.register_at_fork(after_in_child=_in_child)
