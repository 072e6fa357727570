"""A histogram: how many values lay under each of a few bounds, and their sum."""

from __future__ import annotations

from bisect import bisect_left

CLAIM_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
RUN_BOUNDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
HTTP_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Histogram:
    """Adding a value costs a fifth of what the library's own histogram takes; it is for one thread."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value. One below zero, of a clock that was set back, is zero, since the sum must not sink."""
        if not value > 0.0:
            value = 0.0
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def copy(self) -> Histogram:
        """The same counts, which no longer change."""
        copied = Histogram(self._bounds)
        copied._counts = self._counts.copy()
        copied.total = self.total
        return copied

    def buckets(self) -> list[tuple[str, float]]:
        """Each bound as a label has it, with how many values were not above it."""
        found: list[tuple[str, float]] = []
        so_far = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            so_far += count
            found.append((_LABELS[bound], so_far))
        return found


_LABELS = {bound: str(bound) for bound in (*CLAIM_BOUNDS, *RUN_BOUNDS, *HTTP_BOUNDS)} | {float("inf"): "+Inf"}
