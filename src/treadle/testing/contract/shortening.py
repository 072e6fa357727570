"""Shortening: which steps of a history that failed are needed for it to fail (S3)."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.testing.contract.steps import Step
from treadle.testing.contract.twins import Twins
from treadle.testing.opening import StoreFactory

TRIES = 150


def replayed(factory: StoreFactory, history: Sequence[Step]) -> Exception | None:
    """What the history ends in on a new store, comparing all jobs after each step; None where nothing is wrong."""
    twins = Twins(factory)
    try:
        for step in history:
            step.do(twins)
            twins.compare()
    except Exception as error:
        return error
    finally:
        twins.close()
    return None


def shortened(factory: StoreFactory, history: Sequence[Step]) -> tuple[Sequence[Step], Exception | None]:
    """A history without the steps that can be left out, and what it ends in; None where it fails no second time.

    Leaves out larger pieces first. The number of tries is bounded, since each takes a new store.
    """
    error, tries, size = replayed(factory, history), TRIES, len(history) // 2
    while error is not None and size and tries:
        start = 0
        while start < len(history) and tries:
            shorter = [*history[:start], *history[start + size :]]
            tries -= 1
            found = replayed(factory, shorter)
            if type(found) is type(error):
                history, error = shorter, found
            else:
                start += size
        size //= 2
    return history, error


def told(history: Sequence[Step]) -> str:
    """The history, a step a line, as it is added to a failure."""
    lines = "".join(f"\n    {step!r}" for step in history)
    return f"It takes {len(history)} steps, with all jobs compared after each; the last one shows it:{lines}"
