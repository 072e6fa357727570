"""Ids of jobs as arguments, completed from the store (L9)."""

from __future__ import annotations

from typing import Any, Literal

import click
from click.shell_completion import CompletionItem

from treadle.cli.parameters import ParamType
from treadle.core.errors import NotFound


class JobId(ParamType):
    """An id, taken as it is: one that is unknown is no usage error (L3)."""

    name = "id"

    def __init__(self, completes: Literal["any", "dead"]) -> None:
        self._completes = completes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id; text that no store could hold is no job's."""
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotFound(f"there is no job {text!r}") from None
        return text

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The newest ids that begin so."""
        from treadle.cli.candidates import dead_ids, newest_ids

        ids = dead_ids(ctx) if self._completes == "dead" else newest_ids(ctx)
        return [CompletionItem(one) for one in ids if one.startswith(incomplete)]
