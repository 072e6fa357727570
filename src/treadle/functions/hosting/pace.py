"""How fast, how often and how long the hosting of functions waits, all in one place. In seconds, unless it says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.functions.profile import TIMEOUT


@dataclass(frozen=True, slots=True)
class Pace:
    """The numbers of hosting (F2).

    A process must be ready within `ready_within` of its start, and gets `stop_within` to end after SIGTERM. One that was
    replaced, or whose folder is gone, gets `retire_within`, so that calls under way may end. A crash is followed by a pause of
    `first_pause`, doubled with each crash up to `longest_pause`, and back at the first after `steady_after` of being ready.
    A call waits for a pause that ends within `patience`, and fails at once where it is longer. A ready process is looked at
    every `check_every`, and started anew after `checks` failures in a row (a count). The folder is looked at every
    `look_every`.
    """

    ready_within: float = 30.0
    stop_within: float = 5.0
    retire_within: float = TIMEOUT
    first_pause: float = 1.0
    longest_pause: float = 60.0
    steady_after: float = 60.0
    patience: float = 5.0
    check_every: float = 5.0
    checks: int = 3
    look_every: float = 1.0

    def pause(self, failures: int) -> float:
        """How long to wait after so many failures in a row, from 1."""
        return min(self.longest_pause, self.first_pause * 2.0 ** min(failures - 1, 32))
