"""What the scripts take: flat text and numbers, as their headers say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias, assert_never

from treadle.core.filter import JobFilter
from treadle.core.job import NewJob
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.store import Ending
from treadle.stores.redis.moment import moment, span

Argument: TypeAlias = "str | int"
_ANY = (-1,)


def new_jobs(jobs: Sequence[NewJob]) -> list[Argument]:
    """The jobs in groups, as scripts/include/new.lua reads them: neighbours that differ in id, payload and key alone."""
    arguments: list[Argument] = []
    for group in _groups(jobs):
        first = group[0]
        arguments += (
            len(group),
            first.queue,
            first.name,
            f"{1000 - first.priority:04d}",
            "" if first.run_at is None else moment(first.run_at),
            "0" if first.run_at is not None else span(first.delay),
            f"{first.max_attempts or 0:05d}",
            first.schedule or "",
        )
        if first.key is None:
            arguments.append(0)
            for job in group:
                arguments += (job.id, job.payload_json)
        else:
            arguments.append(1)
            for job in group:
                key = job.key
                arguments += (job.id, job.payload_json, *((key.kind, key.text) if key is not None else ()))
    return arguments


def _groups(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    begun = 0
    shared = _shared(jobs[0]) if jobs else None
    for place in range(1, len(jobs)):
        this = _shared(jobs[place])
        if this != shared:
            yield jobs[begun:place]
            begun, shared = place, this
    if jobs:
        yield jobs[begun:]


def _shared(job: NewJob) -> tuple[object, ...]:
    return (job.name, job.queue, job.priority, job.delay, job.run_at, job.max_attempts, job.schedule, job.key is None)


def endings(batch: Sequence[Ending]) -> list[Argument]:
    """The endings in groups, as scripts/finish.lua reads them: neighbours of one claim that end alike."""
    arguments: list[Argument] = []
    for group in _alike(batch):
        first = group[0]
        arguments += (len(group), first.claim.token)
        arguments += outcome(first.outcome, first.following)
        arguments += [ending.claim.id for ending in group]
    return arguments


def _alike(batch: Sequence[Ending]) -> Iterator[Sequence[Ending]]:
    begun = 0
    for place in range(1, len(batch)):
        first, this = batch[begun], batch[place]
        if (
            first.following is not None
            or this.following is not None
            or this.claim.token != first.claim.token
            or this.outcome != first.outcome
        ):
            yield batch[begun:place]
            begun = place
    if batch:
        yield batch[begun:]


def outcome(became: Outcome, following: NewJob | None) -> list[Argument]:
    """The arguments of scripts/include/settle.lua. Texts lose their NULs, which divide the fields of a record (E15)."""
    words: list[Argument]
    match became:
        case Done(note):
            words = ["done", "" if note is None else f"={clean(note)}", "0", 0]
        case RetryAfter(seconds, error):
            words = ["retry", clean(error), span(seconds), 0]
        case Dead(error):
            words = ["dead", clean(error), "0", 0]
        case Released(seconds, interrupted):
            words = ["release", "", span(seconds), int(interrupted)]
        case _:
            assert_never(became)
    return [*words, 0] if following is None else [*words, 1, *new_jobs([following])]


def clean(text: str) -> str:
    """The text without NULs, which divide the fields of a record (E15)."""
    return text.replace("\0", "") if "\0" in text else text


def listed(items: Collection[str] | None) -> tuple[Argument, ...]:
    """A list with its length in front; None, which means any, as -1."""
    return _ANY if items is None else (len(items), *items)


def beginning(prefix: str, after: str) -> str:
    """Where ZRANGEBYLEX begins, for names that begin with `prefix` and are greater than `after`."""
    return f"({after}" if after and after >= prefix else f"[{prefix}" if prefix else "-"


def predicate(which: JobFilter) -> list[Argument]:
    """The arguments of scripts/include/filter.lua; ids are left to the caller."""
    states = None if which.states is None else [state.value for state in which.states]
    return [
        *listed(states),
        *listed(which.names),
        *listed(which.queues),
        "" if which.older_than is None else span(which.older_than),
        _choice(which.keyed),
        _choice(which.of_faces),
    ]


def _choice(wanted: bool | None) -> str:
    return "" if wanted is None else str(int(wanted))
