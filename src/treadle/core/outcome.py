"""What an attempt became: decided in core, applied by a store in one step if the claim still holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Done:
    """The attempt succeeded. `note` is a short remark kept on the job, such as the HTTP status of an answer."""

    note: str | None = None


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """The attempt failed and counts; the job is pending again, due `seconds` after the store's now."""

    seconds: float
    error: str


@dataclass(frozen=True, slots=True)
class Dead:
    """The attempt failed and was the last: the job is a dead letter."""

    error: str


@dataclass(frozen=True, slots=True)
class Released:
    """The job is given back unfinished, due `seconds` after the store's now, with its attempt refunded.

    `interrupted` counts the release as an interruption (a stop, a host that went away), which a snooze is not.
    """

    seconds: float = 0.0
    interrupted: bool = False


Outcome: TypeAlias = Done | RetryAfter | Dead | Released
