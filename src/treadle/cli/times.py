"""Moments and time zones as options take them (L10)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from click.shell_completion import CompletionItem

from treadle.cli.parameters import ParamType
from treadle.core.errors import InvalidArgument


class Moment(ParamType):
    """An ISO 8601 date and time; one without an offset stays naive, for the command to read in its zone."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The moment, or a usage error."""
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a moment in ISO 8601; write it as 2026-06-01T00:00:00Z.", param, ctx)


class Zone(ParamType):
    """The IANA name of a time zone. Completes from the zones that this machine knows."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or a usage error."""
        from treadle.core.cron.zone import zone_of  # loads the zone data

        try:
            zone_of(value)
        except InvalidArgument as error:
            self.fail(f"{error}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The zones whose names begin so, in any case."""
        from zoneinfo import available_timezones

        begun = incomplete.lower()
        return [CompletionItem(zone) for zone in sorted(available_timezones()) if zone.lower().startswith(begun)]
