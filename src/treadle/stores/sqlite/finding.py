"""Finding: which index a filter is read through, and its parameters (S8)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    """A filter as the statements take it: the files that say through which indexes to look, and the parameters."""

    sources: Sequence[str]
    parameters: dict[str, Any]


def search(which: JobFilter, now: int) -> Search:
    """How to look for these jobs: by ids if given, else by queue and name, and the running ones by their leases."""
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
        return Search(["by_id"], parameters)
    sources = ["by_kind"] if states - {State.RUNNING} else []
    return Search([*sources, "by_lease"] if State.RUNNING in states else sources, parameters)


def search_by_age(which: JobFilter, now: int) -> Search:
    """How to look for finished jobs of an age, where few are that old."""
    _, parameters = search(which, now)
    kinds = [kind for kind in range(len(KINDS)) if which.keyed is None or which.keyed == (kind == 1)]
    return Search(["by_age"], {**parameters, "key_kinds": as_json(kinds)})


def ages(which: JobFilter) -> bool:
    """Whether the filter means finished jobs only, by age, so that the index of those serves."""
    return which.ids is None and which.older_than is not None and which.states is not None and which.states <= FINISHED


def find(session: Session, which: JobFilter, limit: int, before: str | None, now: int) -> list[Job]:
    """The matching jobs with their failures, newest id first."""
    found = _found(session, "find", search(which, now), newest=True, limit=limit, before=before or _LAST)
    return full_jobs(session, [seq for seq, _ in found])


def count(session: Session, which: JobFilter, now: int) -> int:
    """How many match."""
    sources, parameters = search_by_age(which, now) if ages(which) else search(which, now)
    return sum(session.value("count", source, **parameters) for source in sources)


def pick(session: Session, which: JobFilter, limit: int, after: str, now: int) -> list[tuple[int, str]]:
    """The seq and id of the matching jobs that are to be changed, oldest id first.

    By age, the index of finished jobs has to be sorted by id. Where many are old enough, the oldest ids are nearly always
    among them, so those are looked at first; a prune in many small steps would else sort its whole backlog at each.
    """
    wanted = search(which, now)
    if ages(which):
        by_age = search_by_age(which, now)
        [source] = by_age.sources
        if session.value("enough_old", source, **by_age.parameters, bound=_MANY) == _MANY:
            found = _found(session, "pick_walk", wanted, window=limit + _MANY, limit=limit, after=after)
            if len(found) == limit:
                return found
        wanted = by_age
    return _found(session, "pick", wanted, limit=limit, after=after)


def narrowed(which: JobFilter, states: Collection[State]) -> JobFilter:
    """The filter, for jobs in these states only."""
    wanted = frozenset(states)
    return replace(which, states=wanted if which.states is None else which.states & wanted)


def _list(texts: Collection[str]) -> str:
    return as_json(list(dict.fromkeys(texts)))


def _found(
    session: Session, name: str, wanted: Search, *, limit: int, newest: bool = False, **more: Any
) -> list[tuple[int, str]]:
    """The seq and id of what the statement finds through each index, in order of ids, at most `limit`."""
    found: list[tuple[int, str]] = []
    for source in wanted.sources:
        found += [(seq, job_id) for seq, job_id in session.loaded(name, source, **wanted.parameters, limit=limit, **more)]
    if len(wanted.sources) > 1:
        found.sort(key=lambda pair: pair[1], reverse=newest)
    return found[:limit]
