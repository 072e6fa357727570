"""Finding: which index a filter is read through, and its parameters (S8)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from treadle.core.filter import JobFilter
from treadle.core.job import FINISHED, Job, State
from treadle.stores.sqlite.claiming import FACES
from treadle.stores.sqlite.moments import span
from treadle.stores.sqlite.rows import CODES, KINDS, full_jobs
from treadle.stores.sqlite.session import Session, as_json

_LAST = "\U0010ffff"  # above every id
_MANY = 4000  # finished jobs: about 4 ms to sort or to look at


class Search(NamedTuple):
    """A filter as the statements take it: the file that says through which index, and the parameters."""

    source: str
    parameters: dict[str, Any]


def search(which: JobFilter, now: int) -> Search:
    """How to look for these jobs: by ids if given, else by queue and name if given, else by state."""
    states = frozenset(State) if which.states is None else which.states
    parameters: dict[str, Any] = {
        "ids": None if which.ids is None else _list(which.ids),
        "states": as_json(sorted(code for state in states for code in CODES[state])),
        "names": None if which.names is None else _list(which.names),
        "queues": None if which.queues is None else _list(which.queues),
        "of_faces": None if which.of_faces is None else int(which.of_faces),
        "keyed": None if which.keyed is None else int(which.keyed),
        "cutoff": None if which.older_than is None else now - span(which.older_than),
        **FACES,
    }
    if which.ids is not None:
        return Search("by_id", parameters)
    if which.names is not None or which.queues is not None or which.of_faces is not None:
        return Search("by_name", parameters)
    return Search("by_state", parameters)


def search_by_age(which: JobFilter, now: int) -> Search:
    """How to look for finished jobs of an age, where few are that old."""
    _, parameters = search(which, now)
    kinds = [kind for kind in range(len(KINDS)) if which.keyed is None or which.keyed == (kind == 1)]
    return Search("by_age", {**parameters, "key_kinds": as_json(kinds)})


def ages(which: JobFilter) -> bool:
    """Whether the filter means finished jobs only, by age, so that the index of those serves."""
    return which.ids is None and which.older_than is not None and which.states is not None and which.states <= FINISHED


def find(session: Session, which: JobFilter, limit: int, before: str | None, now: int) -> list[Job]:
    """The matching jobs with their failures, newest id first."""
    source, parameters = search(which, now)
    return full_jobs(session, session.loaded("find", source, **parameters, limit=limit, before=before or _LAST))


def count(session: Session, which: JobFilter, now: int) -> int:
    """How many match."""
    source, parameters = search_by_age(which, now) if ages(which) else search(which, now)
    return int(session.value("count", source, **parameters))


def pick(session: Session, which: JobFilter, limit: int, after: str, now: int) -> list[tuple[int, str]]:
    """The seq and id of the matching jobs that are to be changed, oldest id first.

    By age, the index of finished jobs has to be sorted by id. Where many are old enough, the oldest ids are nearly always
    among them, so those are looked at first; a prune in many small steps would else sort its whole backlog at each.
    """
    source, parameters = search(which, now)
    if ages(which):
        by_age = search_by_age(which, now)
        if session.value("enough_old", by_age.source, **by_age.parameters, bound=_MANY) == _MANY:
            found = session.loaded("pick_walk", source, **parameters, window=limit + _MANY, limit=limit, after=after)
            if len(found) == limit:
                return _pairs(found)
        source, parameters = by_age
    return _pairs(session.loaded("pick", source, **parameters, limit=limit, after=after))


def narrowed(which: JobFilter, states: Collection[State]) -> JobFilter:
    """The filter, for jobs in these states only."""
    wanted = frozenset(states)
    return replace(which, states=wanted if which.states is None else which.states & wanted)


def _list(texts: Collection[str]) -> str:
    return as_json(list(dict.fromkeys(texts)))


def _pairs(found: Iterable[Sequence[Any]]) -> list[tuple[int, str]]:
    return [(seq, job_id) for seq, job_id in found]
