"""`fail_on`: which answers of a function are failures after all, such as `>=500` (F5)."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

from treadle.core.errors import InvalidArgument

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    ">=": ge,
    "<=": le,
    ">": gt,
    "<": lt,
    "!=": ne,
    "==": eq,
    "=": eq,
    "": eq,
}
_TERM = re.compile(r"\s*(>=|<=|!=|==|=|>|<|)\s*([1-5][0-9]{2})(?:\s*-\s*([1-5][0-9]{2}))?\s*\Z", re.ASCII)
FORMS = "comparisons and ranges of statuses, parted by commas, such as '>=500', '429, >=500' or '400-499'"
MOST = 200


_Term = tuple[Callable[[int, int], bool], int, int]


@dataclass(frozen=True, slots=True)
class FailOn:
    """An answer whose status any of the terms matches fails the call. `text` is how it was written."""

    text: str

    def __post_init__(self) -> None:
        text: object = self.text  # which comes from whoever registers a function
        if not isinstance(text, str) or len(text) > MOST:
            raise InvalidArgument(f"fail_on must be text of at most {MOST} characters: {FORMS}; not {str(text)[:40]!r}")
        _terms(self.text)  # refuse now, not at the first answer

    def __call__(self, status: int) -> bool:
        """Whether an answer with this status is a failure."""
        return any(compare(status, low) and status <= high for compare, low, high in _terms(self.text))


@functools.lru_cache(maxsize=1024)
def _terms(text: str) -> tuple[_Term, ...]:
    return tuple(_term(part) for part in text.split(","))


def _term(text: str) -> _Term:
    match = _TERM.match(text)
    if match is not None:
        comparison, low, high = match.groups()
        if high is None:
            return _COMPARISONS[comparison], int(low), 999
        if not comparison and int(low) <= int(high):
            return ge, int(low), int(high)
    raise InvalidArgument(f"fail_on cannot be read at {text.strip()[:40]!r}; it takes {FORMS}")
