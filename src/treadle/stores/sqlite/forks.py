"""Forks: no connection is open at the moment of one, so that parent and child each open their own (S5).

SQLite keeps what it knows of a file's locks in the memory of the process, and a child inherits that without the locks
themselves: it would believe it holds them, and a parent that closes would delete the log which the child is writing.
So before a fork the store's threads come to rest and its connections are closed; both sides open again at the next use.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """What must be at rest during a fork."""

    def pause(self) -> None:
        """Before the fork: come to rest, and close."""
        ...

    def resume(self) -> None:
        """After it, in the parent: go on."""
        ...

    def leave(self) -> None:
        """After it, in the child: start afresh at the next use."""
        ...


_all: weakref.WeakSet[Forkable] = weakref.WeakSet()
_paused: list[Forkable] = []


def watch(one: Forkable) -> None:
    """From now on have it rest during forks of this process."""
    _all.add(one)


def _before() -> None:
    for one in list(_all):
        one.pause()
        _paused.append(one)


def _in_parent() -> None:
    while _paused:
        _paused.pop().resume()


def _in_child() -> None:
    while _paused:
        _paused.pop().leave()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
