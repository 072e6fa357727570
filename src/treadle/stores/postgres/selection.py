"""`JobFilter` as the parameters that all statements with a filter begin with (L5)."""

from __future__ import annotations

from datetime import datetime

from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.stores.postgres.rows import possible

_ALL = frozenset(State)


def parameters(which: JobFilter, now: datetime | None, states: frozenset[State] = _ALL) -> list[object]:
    """The parameters $1 to $8 of matches.sql, for these states at most."""
    wanted = states if which.states is None else which.states & states
    return [
        now,
        None if which.ids is None else possible(tuple(which.ids)),
        [state.value for state in wanted],
        None if which.names is None else possible(which.names),
        None if which.queues is None else possible(which.queues),
        which.older_than,
        which.keyed,
        which.of_faces,
    ]
