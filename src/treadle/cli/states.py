"""How each state looks on a terminal."""

from __future__ import annotations

_COLOURS = {"pending": "yellow", "running": "cyan", "done": "green", "dead": "red"}


def colour_of(state: str) -> str | None:
    """The colour of a state's name."""
    return _COLOURS.get(state)
