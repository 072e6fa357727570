"""The schedules of the chosen store: what can be done to them, their names as arguments, and their JSON (L8 to L10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from treadle.cli.ages import iso
from treadle.cli.opening import with_store
from treadle.cli.parameters import ParamType
from treadle.core.errors import InvalidArgument, NotFound
from treadle.core.payload import decode
from treadle.core.schedule import Schedule
from treadle.core.store import Store
from treadle.engine.clock import EngineClock
from treadle.engine.ids import new_id
from treadle.engine.schedules import Schedules

T = TypeVar("T")


class ScheduleName(ParamType):
    """The name of a schedule, taken as it is: one that is unknown is no usage error. Completes from the store."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name; text that no store could hold is no schedule's."""
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotFound(f"there is no schedule {text!r}") from None
        return text

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so."""
        from treadle.cli.candidates import schedule_names

        return [CompletionItem(name) for name in schedule_names(ctx, incomplete)]


def with_schedules(work: Callable[[Schedules], Awaitable[T]]) -> T:
    """Do the work on the schedules of the chosen store, which must exist."""
    clock = EngineClock()

    def opened(store: Store) -> Awaitable[T]:
        return work(Schedules(store, store, clock, lambda: new_id(clock.unix_ms()), lambda: None))

    return with_store(opened)


def schedule_document(schedule: Schedule) -> dict[str, Any]:
    """A schedule as JSON: one shape, wherever one is printed (L8)."""
    return {
        "name": schedule.name,
        "expression": schedule.expression,
        "description": sentence(schedule),
        "tz": schedule.tz,
        "seconds": schedule.seconds,
        "job": schedule.job.name,
        "payload": decode(schedule.job.payload_json),
        "queue": schedule.job.queue,
        "priority": schedule.job.priority,
        "max_attempts": schedule.job.max_attempts,
        "last_at": iso(schedule.last_at),
        "next_at": iso(schedule.next_at),
        "paused": schedule.paused,
        "revision": schedule.revision,
    }


def sentence(schedule: Schedule) -> str | None:
    """The expression in English; None where it cannot be read here, since this machine lacks its zone, say."""
    try:
        return schedule.cron.describe()
    except InvalidArgument:
        return None
