"""Selection: the jobs that a filter means, through the index that has the fewest of them (S8)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import merge
from itertools import islice
from operator import itemgetter

from treadle.core.filter import JobFilter
from treadle.core.job import Job, State
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
    return list(islice(_matching(ledger, which, now, limit, newest_first=newest_first, before=before), limit))


def number(ledger: Ledger, which: JobFilter, now: datetime) -> int:
    """How many jobs match."""
    if which == JobFilter(states=which.states, names=which.names):
        if which.names is None:
            return sum(map(ledger.number, _ALL if which.states is None else which.states))
        if which.states is None:
            return sum(ledger.by_name[name].live for name in which.names if name in ledger.by_name)
    return sum(1 for _ in _matching(ledger, which, now, None, newest_first=False, before=None))


def _matching(
    ledger: Ledger, which: JobFilter, now: datetime, limit: int | None, *, newest_first: bool, before: str | None
) -> Iterator[Job]:
    cutoff = None
    if which.older_than is not None:
        cutoff = earlier(now, which.older_than)
        if cutoff is None:
            return
    lists = [sorted(which.ids)] if which.ids is not None else _candidates(ledger, which, cutoff, limit)
    condition = replace(which, ids=None)  # where ids are given, the candidates are those
    last = None
    for job_id in merge(*(_walk(ids, newest_first, before) for ids in lists), reverse=newest_first):
        if job_id == last:
            continue
        last = job_id
        job = ledger.jobs.get(job_id)
        if job is not None and condition.matches(job, now):
            yield job


def _candidates(ledger: Ledger, which: JobFilter, cutoff: datetime | None, limit: int | None) -> Sequence[Sequence[str]]:
    """Lists of ids in order, with all that match among them."""
    states = _ALL if which.states is None else which.states
    places = [place for place in ledger.finished if place[0] in states and which.keyed in (None, place[1])]
    running = len(ledger.tokens) if State.RUNNING in states else 0
    pending = ledger.pending.live if State.PENDING in states else 0
    total = running + pending + sum(ledger.finished[place].live for place in places)
    names = None if which.names is None else [ledger.by_name[name] for name in which.names if name in ledger.by_name]
    if cutoff is not None and not running and not pending:
        ages = [(entries, bisect_right(entries, cutoff, key=_when)) for entries in (ledger.ages[p].ordered() for p in places)]
        old = sum(end for _, end in ages)
        # Sorting the old ones by id costs their number; walking all by id until `limit` are found, limit * total / old.
        if limit is None or old * old <= limit * total:
            return [sorted(job_id for entries, end in ages for _, job_id in entries[:end])]
    if names is not None and sum(roll.live for roll in names) < total:
        return [roll.ordered() for roll in names]
    lists: list[Sequence[str]] = [ledger.finished[place].ordered() for place in places]
    if pending:
        lists.append(ledger.pending.ordered())
    if running:
        lists.append(sorted(ledger.tokens))
    return lists


def _walk(ids: Sequence[str], newest_first: bool, before: str | None) -> Iterator[str]:
    end = len(ids) if before is None else bisect_left(ids, before)
    return (ids[at] for at in (range(end - 1, -1, -1) if newest_first else range(end)))
