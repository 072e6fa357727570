"""Forks: a child leaves the connections of its parent to a server alone, for good, and makes its own at its next use (S7).

What an event loop watches stands in a table of the system's that parent and child share. A child that closed its copy of a
connection, as the mere end of its process would, takes it out of that table, and the parent would never hear of answers
again; and what is said in closing, a server would take for the parent's goodbye.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from typing import Protocol


class Forkable(Protocol):
    """What holds connections or threads."""

    def leave(self) -> None:
        """In the child of a fork: start afresh at the next use, with locks of its own, since the old ones may be held."""
        ...


_all: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(one: Forkable) -> None:
    """From now on have it start afresh in the children of this process."""
    _all.add(one)


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
