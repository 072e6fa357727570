"""The kinds of values that options take: each refuses what it does not mean, as a usage error (L3, L7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import MAX_NAME, checked_queue, checked_text

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic in newer versions of click only

_MOST_DIGITS = 18


class PlainInteger(ParamType):
    """A whole number from `low` to `high` in plain ASCII digits: no sign, no space, no underscore, no other script (L3)."""

    name = "integer"

    def __init__(self, low: int = 1, high: int | None = None) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or a usage error."""
        if isinstance(value, int):
            return value
        if not (value.isascii() and value.isdigit()):
            self.fail(f"{value!r} is not a positive whole number in plain digits.", param, ctx)
        number = int(value) if len(value) <= _MOST_DIGITS else 10**_MOST_DIGITS
        if number < self.low or (self.high is not None and number > self.high):
            upto = "" if self.high is None else f" and at most {self.high}"
            self.fail(f"{value} is out of range; it must be at least {self.low}{upto}.", param, ctx)
        return number


class JobName(ParamType):
    """A name that a job can have (E1); any other is an error, and never "no matches". Completes from the names that wait."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or a usage error."""
        try:
            return checked_text(value, "the name", MAX_NAME)
        except InvalidArgument as error:
            self.fail(f"{error}.", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names of pending jobs that begin so."""
        from treadle.cli.candidates import waiting_names

        return [CompletionItem(name) for name in waiting_names(ctx) if name.startswith(incomplete)]


class QueueNames(ParamType):
    """Names of queues with commas between them."""

    name = "queues"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The names, or a usage error."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(checked_queue(name.strip()) for name in value.split(","))
        except InvalidArgument as error:
            self.fail(f"{error}.", param, ctx)
