"""Cutting a batch into pieces: by number, and by bytes where it carries payloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
MOST_BYTES = 16_777_216


def pieces(items: Sequence[Item], most: int, weight: Callable[[Item], int] | None = None) -> Iterator[Sequence[Item]]:
    """The items in order, at most so many at a time, and by `weight` no more than 16 MiB of them, or a single one."""
    first = 0
    while first < len(items):
        after = min(first + most, len(items))
        if weight is not None:
            load = 0
            for place in range(first, after):
                load += weight(items[place])
                if load > MOST_BYTES and place > first:
                    after = place
                    break
        yield items[first:after]
        first = after
