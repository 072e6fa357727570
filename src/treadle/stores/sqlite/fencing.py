"""The mark of a move as every call meets it (S13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from treadle.core.transfer import Mark, checked_fence, mark_of
from treadle.stores.sqlite.session import Session

T = TypeVar("T")


def mark(session: Session) -> Mark | None:
    """The mark."""
    rows = session.rows("mark_get")
    return mark_of(rows[0][0]) if rows else None


def open_only(session: Session) -> None:
    """Raise if the mark closes the store.

    The triggers refuse every change by themselves; this is for calls that may find nothing to change and so meet none.
    """
    rows = session.rows("mark_get")
    if rows:
        checked_fence(mark_of(rows[0][0]))


def guarded(operation: Callable[[Session], T]) -> Callable[[Session], T]:
    """The operation, where the store is open."""

    def run(session: Session) -> T:
        open_only(session)
        return operation(session)

    return run
