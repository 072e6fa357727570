"""Changing many jobs: delete, redrive and run now, each in steps that let other writers in between (E2, E17, E29)."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.filter import JobFilter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Redriven
from treadle.stores.sqlite.finding import search
from treadle.stores.sqlite.session import Session, as_json


def delete(session: Session, which: JobFilter, seqs: Sequence[int], now: int) -> int:
    """Delete those of the picked jobs that still match; answers how many."""
    found = [seq for seq, *_ in _still(session, which, seqs, now)]
    if found:
        session.rows("interval_due_of", seqs=as_json(found))
        remove(session, found)
    return len(found)


def run_now(session: Session, which: JobFilter, seqs: Sequence[int], now: int) -> int:
    """Make those of the picked jobs due that still match; answers how many."""
    found = [seq for seq, *_ in _still(session, which, seqs, now)]
    if found:
        session.rows("make_due", seqs=as_json(found), now=now)
        session.rows("interval_due_of", seqs=as_json(found))
        session.arrived = True
    return len(found)


def redrive(session: Session, which: JobFilter, seqs: Sequence[int], now: int, policy: RedrivePolicy) -> Redriven:
    """Send those of the picked dead letters round again that still match; one whose dedupe key is held is dropped (E17)."""
    revived: dict[int, str] = {}
    dropped: dict[int, str] = {}
    found = _still(session, which, seqs, now)
    taken = _taken(session, found)
    for seq, job_id, name, kind, key in found:
        if kind == _DEDUPE and (name, key) in taken:
            dropped[seq] = job_id
            continue
        if kind == _DEDUPE:
            taken.add((name, key))
        revived[seq] = job_id
    if dropped:
        remove(session, list(dropped))
    if revived:
        session.rows("revive", seqs=as_json(list(revived)), now=now, reset=int(policy is RedrivePolicy.RESET))
        session.arrived = True
    return Redriven(list(revived.values()), list(dropped.values()))


_DEDUPE = 2
_Found = Sequence[tuple[int, str, str, int, str | None]]


def _still(session: Session, which: JobFilter, seqs: Sequence[int], now: int) -> _Found:
    """What still matches: the jobs were picked without a lock."""
    _, parameters = search(which, now)
    found: _Found = session.loaded("still", **parameters, seqs=as_json(seqs))
    wanted = None if which.ids is None else set(which.ids)
    return [row for row in found if wanted is None or row[1] in wanted]


def _taken(session: Session, found: _Found) -> set[tuple[str, str | None]]:
    """The dedupe keys of these dead letters that unfinished jobs hold."""
    keyed = [(job_id, name, kind, key) for _, job_id, name, kind, key in found if kind == _DEDUPE]
    if not keyed:
        return set()
    holders = session.loaded("holders", jobs=as_json(keyed))
    return {(keyed[place][1], keyed[place][3]) for place, _, by_key in holders if by_key is not None}


def remove(session: Session, seqs: Sequence[int]) -> None:
    """Delete these jobs, with what belongs to them."""
    text = as_json(seqs)
    session.rows("delete_failures", seqs=text)
    session.rows("delete_payloads", seqs=text)
    session.rows("delete_jobs", seqs=text)
