"""Selection: the jobs that a filter means, through the index that has the fewest of them (S8)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import merge
from itertools import islice
from operator import itemgetter

from treadle.core.filter import JobFilter
from treadle.core.job import FINISHED, Job, State
from treadle.stores.memory.ledger import Ledger
from treadle.stores.memory.moments import earlier

_ALL = frozenset(State)
_when = itemgetter(0)


def narrowed(which: JobFilter, states: frozenset[State]) -> JobFilter:
    """The filter, for these states at most."""
    return replace(which, states=states if which.states is None else which.states & states)


def select(
    ledger: Ledger,
    which: JobFilter,
    now: datetime,
    *,
    limit: int | None = None,
    newest_first: bool = False,
    before: str | None = None,
) -> list[Job]:
    """Matching jobs by id, at most `limit`; `before` is the id that they come before."""
    return list(islice(_matching(ledger, which, now, limit, newest_first, before), limit))


def number(ledger: Ledger, which: JobFilter, now: datetime) -> int:
    """How many jobs match."""
    if which.ids is None and which.queues is None and which.older_than is None and which.keyed is None:
        if which.names is None:
            return sum(_of_state(ledger, state) for state in (which.states if which.states is not None else _ALL))
        if which.states is None:
            return sum(ledger.by_name[name].live for name in which.names if name in ledger.by_name)
    return sum(1 for _ in _matching(ledger, which, now, None, False, None))


def _matching(
    ledger: Ledger, which: JobFilter, now: datetime, limit: int | None, newest_first: bool, before: str | None
) -> Iterator[Job]:
    if which.older_than is not None and earlier(now, which.older_than) is None:
        return
    ids = _candidates(ledger, which, now, limit, newest_first, before)
    condition = replace(which, ids=None)  # the candidates are of these ids only, if any are given
    last = None
    for job_id in ids:
        if job_id == last:
            continue
        last = job_id
        job = ledger.jobs.get(job_id)
        if job is not None and condition.matches(job, now):
            yield job


def _candidates(
    ledger: Ledger, which: JobFilter, now: datetime, limit: int | None, newest_first: bool, before: str | None
) -> Iterable[str]:
    """Ids in order, all that match among them."""
    if which.ids is not None:
        return _in_order(which.ids, newest_first, before)
    states = which.states if which.states is not None else _ALL
    total = sum(_of_state(ledger, state) for state in states)
    if which.older_than is not None and states <= FINISHED:
        old = _finished_before(ledger, states, which.keyed, now, which.older_than)
        # Sorting the old ones costs their number; walking all by id until `limit` are found about limit * total / old.
        if limit is None or len(old) ** 2 <= limit * total:
            return _in_order(old, newest_first, before)
    names = None if which.names is None else [ledger.by_name[name] for name in which.names if name in ledger.by_name]
    if names is not None and sum(roll.live for roll in names) < total:
        lists = [roll.ordered() for roll in names]
    else:
        lists = [ledger.by_state[state].ordered() for state in states if state is not State.RUNNING]
        if State.RUNNING in states:
            lists.append(sorted(ledger.tokens))
    return merge(*(_walk(ids, newest_first, before) for ids in lists), reverse=newest_first)


def _of_state(ledger: Ledger, state: State) -> int:
    return len(ledger.tokens) if state is State.RUNNING else ledger.by_state[state].live


def _finished_before(ledger: Ledger, states: frozenset[State], keyed: bool | None, now: datetime, age: float) -> list[str]:
    cutoff = earlier(now, age)
    ids: list[str] = []
    for (state, has_key), roll in ledger.finished.items():
        if state in states and keyed in (None, has_key):
            entries = roll.ordered()
            ids += [job_id for _, job_id in entries[: bisect_right(entries, cutoff, key=_when)]]
    return ids


def _in_order(ids: Iterable[str], newest_first: bool, before: str | None) -> list[str]:
    ordered = sorted(ids, reverse=newest_first)
    return ordered if before is None else [job_id for job_id in ordered if job_id < before]


def _walk(ids: Sequence[str], newest_first: bool, before: str | None) -> Iterator[str]:
    end = len(ids) if before is None else bisect_left(ids, before)
    return (ids[at] for at in (range(end - 1, -1, -1) if newest_first else range(end)))
