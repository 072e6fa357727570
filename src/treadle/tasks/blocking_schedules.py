"""The blocking twins of `tasks.schedules`, for code that has no event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from treadle.core.job import Enqueued
from treadle.core.schedule import Schedule
from treadle.engine.portal import Portal
from treadle.engine.schedules import Schedules

if TYPE_CHECKING:
    from treadle.tasks.app import Tasks

T = TypeVar("T")


class SyncSchedules:
    """Each method is that of `tasks.schedules`, and blocks (T14)."""

    def __init__(self, tasks: Tasks, portal: Portal) -> None:
        self._tasks = tasks
        self._portal = portal

    def list(self, prefix: str = "") -> list[Schedule]:
        """All schedules whose names begin with `prefix`, by name."""
        return self._done(lambda schedules: schedules.list(prefix))

    def get(self, name: str) -> Schedule:
        """The schedule; raises `NotFound`."""
        return self._done(lambda schedules: schedules.get(name))

    def pause(self, name: str) -> Schedule:
        """Stop the schedule from firing; what is enqueued stays."""
        return self._done(lambda schedules: schedules.pause(name))

    def resume(self, name: str) -> Schedule:
        """Let the schedule fire again, from its next time on (T10)."""
        return self._done(lambda schedules: schedules.resume(name))

    def run_now(self, name: str) -> Enqueued:
        """Enqueue the schedule's job now; raises `Conflict` while a firing is unfinished."""
        return self._done(lambda schedules: schedules.run_now(name))

    def delete(self, name: str) -> None:
        """Delete the schedule; its jobs stay."""
        self._done(lambda schedules: schedules.delete(name))

    def _done(self, work: Callable[[Schedules], Awaitable[T]]) -> T:
        async def within_the_portal() -> T:
            return await work(self._tasks.schedules)  # those of the portal's own loop

        return self._portal.call(within_the_portal())
