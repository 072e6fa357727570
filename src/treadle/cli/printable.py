"""Text from jobs, made fit for a terminal: nothing in it moves the cursor, and its width is known."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"  # holds emoji together; harmless
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str) -> str:
    """The text with control characters, line breaks and changes of direction shown as escapes."""
    if text.isprintable():
        return text
    return "".join(_escaped(char) if _harmful(char) else char for char in text)


def _harmful(char: str) -> bool:
    return not char.isprintable() and char != _JOINER and unicodedata.category(char) in _HARMFUL


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char) or char == _JOINER or "\ufe00" <= char <= "\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def clipped(text: str, limit: int, ellipsis: str = "…") -> str:
    """The text in at most `limit` columns, with an ellipsis where something was cut."""
    if columns(text) <= limit:
        return text
    room = limit - len(ellipsis)
    kept = []
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept).rstrip() + ellipsis


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text filled with spaces to `width` columns."""
    fill = " " * (width - columns(text))
    return fill + text if right else text + fill
