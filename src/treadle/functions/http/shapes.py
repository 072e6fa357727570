"""What the shapes that the API answers mean, field by field, for those who read its description (F13).

The types themselves are the client's, and say nothing to a reader of the API, who may use any language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from treadle.client import wire
from treadle.functions.crons import MAX_NAME as MAX_CRON_NAME, NAME_PATTERN as CRON_NAME_PATTERN
from treadle.functions.function import MAX_NAME, NAME_PATTERN
from treadle.functions.profile import MAX_ATTEMPTS, REQUEUE_MOST

_ID = "0199c9d2-5b1e-7c4a-9a53-6f1f0c8e2b7d"
_NAMES: Mapping[str, Any] = {"pattern": f"^{NAME_PATTERN}$", "maxLength": MAX_NAME, "examples": ["send-report"]}
_PAYLOADS: Mapping[str, Any] = {"examples": [{"month": "2026-10", "items": ["a", "b"]}]}


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape in words. `fields` gives each field its JSON Schema beyond its type, the description first."""

    description: str
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _field(description: str, **schema: Any) -> Mapping[str, Any]:
    return {"description": description, **schema}


_SHAPES: Mapping[type, Shape] = {
    wire.Job: Shape(
        "A call of a function in the background. All times are in UTC.",
        {
            "id": _field(
                "A UUID, the same on every attempt, so that a function can tell a repetition.", format="uuid", examples=[_ID]
            ),
            "function": _field("The function that it calls.", **_NAMES),
            "status": _field(
                "`pending` before the first attempt and between attempts, `running` during a call, then `completed` once the "
                "function has answered, or `dead` once no attempt is left.",
                type="string",
                enum=list(wire.STATUSES),
                examples=["completed"],
            ),
            "attempts": _field("How many calls have begun.", minimum=0, examples=[1]),
            "max_attempts": _field(
                "How many calls it gets in all. A dead job that is retried gets one beyond.",
                minimum=1,
                maximum=MAX_ATTEMPTS,
                examples=[3],
            ),
            "error": _field(
                "Why the latest call failed; `null` before the first failure, and once the job is completed.",
                examples=[None],
            ),
            "payload": _field("What the function gets as the body of the call, with its keys in the order given.", **_PAYLOADS),
            "scheduled_at": _field("When the next attempt is due, or the last one was.", examples=["2026-11-01T06:00:00Z"]),
            "started_at": _field(
                "When the latest call began; `null` before the first.", examples=["2026-11-01T06:00:00.250000Z"]
            ),
            "completed_at": _field(
                "When the function answered; `null` until it has.", examples=["2026-11-01T06:00:01.500000Z"]
            ),
            "response_status": _field(
                "The HTTP status that the function answered with, whatever it was; `null` until it has.",
                minimum=100,
                maximum=999,
                examples=[200],
            ),
        },
    ),
    wire.CronJob: Shape(
        "A cron entry: each firing enqueues a job of the function.",
        {
            "name": _field(
                "The entry's name.", pattern=f"^{CRON_NAME_PATTERN}$", maxLength=MAX_CRON_NAME, examples=["monthly-report"]
            ),
            "schedule": _field("Six fields, the second first, in UTC.", format="cron", examples=["0 0 6 1 * *"]),
            "function": _field("The function whose job each firing enqueues.", **_NAMES),
            "payload": _field(
                "The payload of these jobs, as it was when the entry was created.",
                examples=[{"recipients": ["anna@example.org"]}],
            ),
            "last_run": _field("When it fired last; `null` until the first firing.", examples=[None]),
            "next_run": _field("When it fires next; `null` until the first firing.", examples=[None]),
        },
    ),
    wire.Requeued: Shape(
        "How many dead jobs were put back.",
        {
            "requeued": _field(
                "The number of jobs; call again while it is the most there can be.",
                minimum=0,
                maximum=REQUEUE_MOST,
                examples=[1],
            )
        },
    ),
}


def describe_shapes(components: Mapping[str, dict[str, Any]]) -> None:
    """Lay the words over the schemas that were made from the types."""
    for kind, shape in _SHAPES.items():
        component = components.get(kind.__name__)
        if component is not None:
            component["description"] = shape.description
            properties = cast("dict[str, dict[str, Any]]", component["properties"])
            for name, words in shape.fields.items():
                properties[name] |= words
