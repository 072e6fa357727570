"""Data of an answer, read strictly into values; what an answer has beyond them is left to newer clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from treadle.client.wire import STATUSES, CronJob, Job, Requeued, Status

T = TypeVar("T")


class Misfit(Exception):
    """The data are not what was to be read; the text says where."""


@dataclass(frozen=True, slots=True)
class _Fields:
    what: str
    data: dict[str, Any]

    def value(self, name: str) -> Any:
        if name not in self.data:
            raise Misfit(f"{self.what} without `{name}`")
        return self.data[name]

    def text(self, name: str) -> str:
        value = self.value(name)
        if not isinstance(value, str):
            raise self.wrong(name, "text")
        return value

    def whole(self, name: str) -> int:
        value = self.value(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(name, "a whole number")
        return value

    def status(self, name: str) -> Status:
        for status in STATUSES:
            if status == self.value(name):
                return status
        raise self.wrong(name, f"one of {', '.join(STATUSES)}")

    def moment(self, name: str) -> datetime:
        try:
            moment = datetime.fromisoformat(self.text(name))
        except ValueError:
            raise self.wrong(name, "a time of RFC 3339") from None
        if moment.tzinfo is None:
            raise self.wrong(name, "a time with its zone")
        return moment.astimezone(UTC)

    def optional(self, read: Callable[[str], T], name: str) -> T | None:
        return None if self.value(name) is None else read(name)

    def wrong(self, name: str, wanted: str) -> Misfit:
        return Misfit(f"{self.what} whose `{name}` is {str(self.data[name])[:80]!r}, not {wanted}")


def _fields(what: str, data: Any) -> _Fields:
    if not isinstance(data, dict):
        raise Misfit(f"{type(data).__name__} in place of {what}")
    return _Fields(what, data)


def job(data: Any) -> Job:
    """A job. Raises `Misfit`."""
    fields = _fields("a job", data)
    return Job(
        id=fields.text("id"),
        function=fields.text("function"),
        status=fields.status("status"),
        attempts=fields.whole("attempts"),
        max_attempts=fields.whole("max_attempts"),
        error=fields.optional(fields.text, "error"),
        payload=fields.value("payload"),
        scheduled_at=fields.moment("scheduled_at"),
        started_at=fields.optional(fields.moment, "started_at"),
        completed_at=fields.optional(fields.moment, "completed_at"),
        # F10 does not promise it, so a service may leave it out.
        response_status=fields.optional(fields.whole, "response_status") if "response_status" in fields.data else None,
    )


def cron_job(data: Any) -> CronJob:
    """A cron entry. Raises `Misfit`."""
    fields = _fields("a cron entry", data)
    return CronJob(
        name=fields.text("name"),
        schedule=fields.text("schedule"),
        function=fields.text("function"),
        payload=fields.value("payload"),
        last_run=fields.optional(fields.moment, "last_run"),
        next_run=fields.optional(fields.moment, "next_run"),
    )


def requeued(data: Any) -> Requeued:
    """How many were requeued. Raises `Misfit`."""
    return Requeued(requeued=_fields("the count of the requeued", data).whole("requeued"))


def nothing(_data: Any) -> None:
    """Whatever the service says about what it did, done it is."""


def many(read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    """A reader of lists of what `read` reads."""

    def read_many(data: Any) -> list[T]:
        if not isinstance(data, list):
            raise Misfit(f"{type(data).__name__} in place of a list")
        return [read(one) for one in data]

    return read_many
