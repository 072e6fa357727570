"""Durations as people write them: 0s, 90m, 12h, 7d (L5)."""

from __future__ import annotations

from typing import Any

import click

from treadle.cli.parameters import ParamType

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = 100_000 * 86400  # seconds: about 274 years, so that a date minus it is still a date


class Duration(ParamType):
    """Plain digits and one of s, m, h, d; answers seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds, or a usage error."""
        if isinstance(value, float):
            return value
        digits, unit = value[:-1], value[-1:]
        if unit not in _SECONDS or not (digits.isascii() and digits.isdigit()):
            self.fail(f"{value!r} is not a duration; write plain digits and s, m, h or d, such as 90m or 7d.", param, ctx)
        seconds = int(digits[:18]) * _SECONDS[unit]
        if len(digits) > 18 or seconds > LONGEST:
            self.fail(f"{value!r} is too long; at most 100000d.", param, ctx)
        return float(seconds)
