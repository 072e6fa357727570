"""The load that every subject is put under: the same payloads, and the same work in every handler."""

from __future__ import annotations

from typing import Any

from benchmarks.board import hit

TEXT = "x" * 1000


class Failed(Exception):
    """What a tenth of the failing jobs raise. They are enqueued with one attempt, and end there."""


def payload(kind: str, number: int) -> Any:
    """The payload of a job: its number, with 1 KB of text, or so that it may fail."""
    match kind:
        case "plain":
            return number
        case "kilobyte":
            return {"number": number, "text": TEXT}
        case "failing":
            return {"number": number}
    raise ValueError(kind)


def failing(jobs: int) -> int:
    """How many of so many jobs fail."""
    return (jobs + 9) // 10


def handle(load: Any) -> None:
    """What each handler does."""
    if type(load) is int:
        hit(load)
        return
    number = load["number"]
    hit(number)
    if "text" not in load and number % 10 == 0:
        raise Failed("one in ten")
