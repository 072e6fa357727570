"""English for lists of numbers: "1st and 15th", "9 to 11 and 14", and the step that a series keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

SHORTEST_RUN = 3
_SHORTEST_RHYTHM = 4


def joined(words: Sequence[str]) -> str:
    """The words as a list: "a", "a and b", "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def listed(values: Sequence[int], word: Callable[[int], str] = str) -> str:
    """Rising values as a list, with three or more in a row drawn together: "1 to 5, 8 and 9"."""
    words: list[str] = []
    start = 0
    for end in range(1, len(values) + 1):
        if end < len(values) and values[end] == values[end - 1] + 1:
            continue
        run = values[start:end]
        words += [f"{word(run[0])} to {word(run[-1])}"] if len(run) >= SHORTEST_RUN else map(word, run)
        start = end
    return joined(words)


def ordinal(number: int) -> str:
    """The number as a place: 1st, 2nd, 3rd, 4th, 11th, 21st."""
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def rhythm(values: Sequence[int]) -> int | None:
    """The step from each value to the next, if it is always the same and there are enough values to speak of one."""
    if len(values) < _SHORTEST_RHYTHM:
        return None
    step = values[1] - values[0]
    return step if list(values) == list(range(values[0], values[-1] + 1, step)) else None


def fills(values: Sequence[int], count: int) -> int | None:
    """The step, if it leads evenly round the whole of 0 to `count` - 1, as */5 does in an hour and */7 does not."""
    if len(values) < 2:
        return None
    step = values[1] - values[0]
    return step if count % step == 0 and list(values) == list(range(0, count, step)) else None


def in_a_row(values: Sequence[int]) -> bool:
    """Whether no value is left out between the first and the last."""
    return values[-1] - values[0] + 1 == len(values)
