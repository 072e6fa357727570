"""One field of a cron expression: a list of `*`, values, ranges and steps, read into a set (T5)."""

from __future__ import annotations

import re

from treadle.core.cron.fields import WEEKDAY, Field

_SHOWN = 60
_MEMBER = re.compile(r"(?:(\*)|([0-9]+|[A-Za-z]+)(?:-([0-9]+|[A-Za-z]+))?)(?:/([0-9]+))?")
_FOREIGN = re.compile(r"[?#]|[0-9][LW]|^[LW]+$", re.IGNORECASE)


class Refused(Exception):
    """Why an expression is refused; `parse` puts the expression's text in front."""


def shown(text: str) -> str:
    """The text in quotes, on one line and not too long for a message."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def read_field(field: Field, text: str) -> int:
    """The set of values that the text admits, as a bitmask. Raises `Refused`."""
    values = 0
    for member in text.split(","):
        values |= _read_member(field, member, text)
    if field is WEEKDAY:
        values = (values | values >> 7) & field.full  # 7 is Sunday too
    return values


def _read_member(field: Field, member: str, text: str) -> int:
    if not member:
        raise Refused(f"has an empty list member in its {field.name} {shown(text)}; allowed are {_forms(field)}")
    match = _MEMBER.fullmatch(member)
    if match is None:
        raise Refused(f"has the {field.name} {shown(member)}, which cannot be read; {_hint(member)}allowed are {_forms(field)}")
    star, first, last, step = match.groups()
    if star:
        low, high = field.low, field.low + field.count - 1
    else:
        low = _read_value(field, first)
        high = low if last is None else _read_value(field, last)
        if step and last is None:
            raise Refused(
                f"has the {field.name} {shown(member)}, a step without a range; "
                f"allowed are */{step} and a range such as {first}-{field.low + field.count - 1}/{step}"
            )
    if high < low:
        hint = f"; Sunday at the end of a range is 7: write {low}-7" if field is WEEKDAY and high == 0 else ""
        raise Refused(f"has the {field.name} {shown(member)}, a range that runs backward; allowed is low-high{hint}")
    return _series(low, high, _read_step(field, step, member))


def _series(low: int, high: int, step: int) -> int:
    """The set of low, low + step, ... up to high."""
    length = ((high - low) // step + 1) * step
    return ((1 << length) - 1) // ((1 << step) - 1) << low  # a geometric series: one bit in every `step`


def _read_value(field: Field, text: str) -> int:
    if text.isdigit():  # ASCII already: the member matched
        value = int(text)
        if field.low <= value <= field.top:
            return value
    elif text.upper() in field.words:
        return field.low + field.words.index(text.upper())
    raise Refused(f"has the {field.name} {shown(text)}; {_hint(text)}allowed are {field.allowed}")


def _read_step(field: Field, text: str | None, member: str) -> int:
    step = 1 if text is None else int(text)
    if not 1 <= step <= field.count:
        raise Refused(
            f"has the {field.name} {shown(member)} with a step of {shown(text or '')}; allowed are steps of 1 to {field.count}"
        )
    return step


def _forms(field: Field) -> str:
    return f"*, {field.allowed}, ranges a-b, steps */n and a-b/n, and lists of these with commas"


def _hint(text: str) -> str:
    return "?, L, W and # are not supported; " if _FOREIGN.search(text) else ""
